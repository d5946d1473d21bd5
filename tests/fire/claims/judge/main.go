// Judges a history of claims against a sequential specification of each slot and of each account.
//
// Standard input: one operation a line. Standard output: one JSON object with the counts and, of each part that no
// order explains, its name and its operations. The argument is a folder for a page of each such part.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const longest = 60 * time.Second

// Operation is one call of a client: what was asked for which slot, when, and how it ended.
//
// Kind is claim, read or release; End is ok, none (exhausted, or nothing found) or unknown; Return is -1 where no
// answer came. A read without an answer says nothing and is left out by the caller.
type Operation struct {
	Client int    `json:"client"`
	Kind   string `json:"kind"`
	Slot   string `json:"slot"`
	Holder string `json:"holder"`
	Call   int64  `json:"call"`
	Return int64  `json:"return"`
	End    string `json:"end"`
	Member string `json:"member"`
}

func (o Operation) String() string {
	return strings.TrimRight(fmt.Sprintf("%s %s for %s: %s %s", o.Kind, o.Slot, o.Holder, o.End, o.Member), " ")
}

// some is the account of a slot whose claim was done without an answer: any one.
const some = "?"

// held is what has what: an account of a slot, or a slot of an account, and for whom; "" and nobody is free.
type held struct{ what, holders string }

func (h held) String() string { return strings.TrimSpace(h.what + " " + h.holders) }

func (h held) with(what, holder string) held {
	for _, each := range strings.Fields(h.holders) {
		if each == holder {
			return held{what, h.holders}
		}
	}
	all := append(strings.Fields(h.holders), holder)
	sort.Strings(all)
	return held{what, strings.Join(all, " ")}
}

func (h held) without(holder string) held {
	var left []string
	for _, each := range strings.Fields(h.holders) {
		if each != holder {
			left = append(left, each)
		}
	}
	if left == nil {
		return held{}
	}
	return held{h.what, strings.Join(left, " ")}
}

func (h held) by(holder string) bool { return h.with(h.what, holder) == h && h.holders != "" }

// A slot has one account while anybody holds it: a claim that is answered with another one, or with none, broke it.
func slot(state any, input any, _ any) []any {
	now, op := state.(held), input.(Operation)
	isIts := now.what == some || now.what == op.Member
	switch op.Kind + " " + op.End {
	case "claim ok":
		if now.what == "" || isIts {
			return []any{now.with(op.Member, op.Holder)}
		}
	case "claim unknown":
		if now.what == "" {
			return []any{now, now.with(some, op.Holder)}
		}
		return []any{now, now.with(now.what, op.Holder)}
	case "claim none":
		if now.what == "" {
			return []any{now}
		}
	case "read none":
		if !now.by(op.Holder) {
			return []any{now}
		}
	case "read ok":
		if isIts && now.by(op.Holder) {
			return []any{held{op.Member, now.holders}}
		}
	case "release ok":
		return []any{now.without(op.Holder)}
	case "release unknown":
		return []any{now, now.without(op.Holder)}
	}
	return nil
}

// An account has one slot while anybody holds it: a claim that is answered with it while another slot has it broke it.
func account(state any, input any, _ any) []any {
	now, op := state.(held), input.(Operation)
	isMine := now.what == op.Slot
	mayBeMine := isMine || now.what == ""
	switch op.Kind + " " + op.End {
	case "claim ok":
		if !mayBeMine {
			return nil
		}
		return []any{now.with(op.Slot, op.Holder)}
	case "claim unknown":
		if mayBeMine {
			return []any{now, now.with(op.Slot, op.Holder)}
		}
	case "read ok":
		if !isMine {
			return nil
		}
	case "release ok":
		if isMine {
			return []any{now.without(op.Holder)}
		}
	case "release unknown":
		if isMine {
			return []any{now, now.without(op.Holder)}
		}
	}
	return []any{now}
}

func model(step func(any, any, any) []any) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{held{}} },
		Step:              step,
		DescribeOperation: func(input any, _ any) string { return input.(Operation).String() },
		DescribeState:     func(state any) string { return state.(held).String() },
	}
	return nondeterministic.ToModel()
}

// Wrong is a part of the history that no order explains, or that none was found for in time.
type Wrong struct {
	Of         string   `json:"of"`
	Result     string   `json:"result"`
	Fits       int      `json:"fits"`
	Operations []string `json:"operations"`
}

func judged(of string, step func(any, any, any) []any, operations []Operation, folder string) *Wrong {
	history := make([]porcupine.Operation, len(operations))
	for i, op := range operations {
		end := op.Return
		if end < 0 {
			end = 1<<63 - 1
		}
		history[i] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: end}
	}
	specification := model(step)
	result, info := porcupine.CheckOperationsVerbose(specification, history, longest)
	if result == porcupine.Ok {
		return nil
	}
	wrong := &Wrong{Of: of, Result: string(result)}
	for _, orders := range info.PartialLinearizations() {
		for _, order := range orders {
			wrong.Fits = max(wrong.Fits, len(order))
		}
	}
	for _, op := range operations {
		wrong.Operations = append(wrong.Operations, fmt.Sprintf("%d-%d client %d: %s", op.Call, op.Return, op.Client, op))
	}
	page := filepath.Join(folder, strings.NewReplacer("/", "_", " ", "_").Replace(of)+".html")
	if err := porcupine.VisualizePath(specification, info, page); err != nil {
		panic(err)
	}
	return wrong
}

func main() {
	slots, accounts := map[string][]Operation{}, map[string][]Operation{}
	unsure, had := map[string]bool{}, map[string]map[string]bool{}
	var all []Operation
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var op Operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			panic(err)
		}
		all = append(all, op)
		slots[op.Slot] = append(slots[op.Slot], op)
		unsure[op.Slot] = unsure[op.Slot] || op.Kind+op.End == "claimunknown"
		if op.Member != "" {
			if had[op.Member] == nil {
				had[op.Member] = map[string]bool{}
			}
			had[op.Member][op.Slot] = true
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Call < all[j].Call })
	for member, by := range had {
		for _, op := range all {
			isOfAnother := op.Member != "" && op.Member != member
			if !isOfAnother && op.End != "none" && (by[op.Slot] || unsure[op.Slot]) {
				accounts[member] = append(accounts[member], op)
			}
		}
	}
	wrongs := []*Wrong{}
	for name, operations := range slots {
		if wrong := judged("slot "+name, slot, operations, os.Args[1]); wrong != nil {
			wrongs = append(wrongs, wrong)
		}
	}
	for name, operations := range accounts {
		if wrong := judged("account "+name, account, operations, os.Args[1]); wrong != nil {
			wrongs = append(wrongs, wrong)
		}
	}
	answer := map[string]any{"operations": len(all), "slots": len(slots), "accounts": len(accounts), "wrong": wrongs}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err)
	}
}
