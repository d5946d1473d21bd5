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
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const longest = 60 * time.Second

// Operation is one call of a client: of which kind, when, how it ended, and what it was about.
//
// Return is -1 where no answer came. Nr is the claim's own number: a release means one claim, as its fence does.
// A slot's accounts go by Policy when the last holder leaves. An operation without a slot is an operator's or a
// cleaner's; one without slot and member, such as a sweep, must change nothing that anybody is told.
type Operation struct {
	Client int    `json:"client"`
	Kind   string `json:"kind"`
	Slot   string `json:"slot"`
	Holder string `json:"holder"`
	Nr     int    `json:"nr"`
	Policy string `json:"policy"`
	Call   int64  `json:"call"`
	Return int64  `json:"return"`
	End    string `json:"end"`
	Member string `json:"member"`
}

func (o Operation) String() string {
	about := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", o.Slot, o.Holder, o.Policy, o.Member)), " ")
	return fmt.Sprintf("%s %d of %s: %s", o.Kind, o.Nr, about, o.End)
}

// some is the account of a slot whose claim was done without an answer: any one.
const some = "?"

// holders are those who hold something, each with the number of its claim.
type holders string

func (h holders) nr(holder string) (int, bool) {
	for _, each := range strings.Fields(string(h)) {
		if name, nr, _ := strings.Cut(each, "="); name == holder {
			number, _ := strconv.Atoi(nr)
			return number, true
		}
	}
	return 0, false
}

func (h holders) has(holder string) bool {
	_, has := h.nr(holder)
	return has
}

func (h holders) without(holder string) holders {
	var left []string
	for _, each := range strings.Fields(string(h)) {
		if !strings.HasPrefix(each, holder+"=") {
			left = append(left, each)
		}
	}
	return holders(strings.Join(left, " "))
}

func (h holders) with(op Operation) holders {
	all := append(strings.Fields(string(h.without(op.Holder))), fmt.Sprintf("%s=%d", op.Holder, op.Nr))
	sort.Strings(all)
	return holders(strings.Join(all, " "))
}

// released is who is left after a release, and whether it may have ended so.
func (h holders) released(op Operation) (holders, bool) {
	nr, has := h.nr(op.Holder)
	if op.End == "overtaken" {
		return h, has && nr != op.Nr
	}
	if !has {
		return h, true
	}
	return h.without(op.Holder), nr == op.Nr
}

// ofSlot is what a slot has: one account while anybody holds it.
type ofSlot struct {
	member string
	by     holders
}

func (s ofSlot) String() string { return strings.TrimSpace(s.member + " " + string(s.by)) }

func slot(state any, input any, _ any) []any {
	now, op := state.(ofSlot), input.(Operation)
	isIts := now.member == "" || now.member == some || now.member == op.Member
	switch op.Kind + " " + op.End {
	case "claim ok":
		if isIts {
			return []any{ofSlot{op.Member, now.by.with(op)}}
		}
	case "claim unknown":
		taken := now.member
		if taken == "" {
			taken = some
		}
		return []any{now, ofSlot{taken, now.by.with(op)}}
	case "claim none":
		if now.member == "" {
			return []any{now}
		}
	// A write of it that went unanswered may have been done after all, when it had looked again and was refused.
	case "claim refused":
		if now.by != "" {
			return []any{now, ofSlot{now.member, now.by.with(op)}}
		}
		return []any{now}
	case "read none":
		if !now.by.has(op.Holder) {
			return []any{now}
		}
	case "read ok":
		if isIts && now.by.has(op.Holder) {
			return []any{ofSlot{op.Member, now.by}}
		}
	case "release ok", "release overtaken":
		if by, may := now.by.released(op); may {
			return []any{left(now, by)}
		}
	case "release unknown":
		if by, may := now.by.released(op); may {
			return []any{now, left(now, by)}
		}
		return []any{now}
	}
	return nil
}

func left(now ofSlot, by holders) ofSlot {
	if by == "" {
		return ofSlot{}
	}
	return ofSlot{now.member, by}
}

// ofAccount is who has an account: one slot while anybody holds it, or the tenant that brought it along, or that
// retained it. What was used under policy clean is dirty until somebody wiped it, what is quarantined is nobody's next.
type ofAccount struct {
	slot                      string
	by                        holders
	isOwn, isDirty, isOutside bool
}

func (a ofAccount) String() string {
	told := strings.TrimSpace(a.slot + " " + string(a.by))
	for word, is := range map[string]bool{" brought": a.isOwn, " dirty": a.isDirty, " quarantined": a.isOutside} {
		if is {
			told += word
		}
	}
	return told
}

// free is an account whose last holder left.
func (a ofAccount) free(policy string) ofAccount {
	a.by = ""
	switch {
	case a.isOwn || policy == "retain":
	case policy == "clean":
		a.slot, a.isDirty = "", true
	default:
		a.slot = ""
	}
	return a
}

func (a ofAccount) released(op Operation) (ofAccount, bool) {
	if a.slot != op.Slot {
		return a, op.End != "overtaken"
	}
	by, may := a.by.released(op)
	if by == "" && a.by != "" {
		return a.free(op.Policy), may
	}
	a.by = by
	return a, may
}

func account(state any, input any, _ any) []any {
	now, op := state.(ofAccount), input.(Operation)
	mayBeTaken := (now.slot == "" || now.slot == op.Slot) && (!now.isOutside || now.by.has(op.Holder)) && !now.isDirty
	taken, wiped, kept := now, now, now
	taken.slot, taken.by = op.Slot, now.by.with(op)
	wiped.isDirty, kept.isOutside = false, true
	isRetained := now.slot != "" && now.by == "" && !now.isOwn
	switch op.Kind + " " + op.End {
	case "brought ok":
		return []any{ofAccount{slot: op.Slot, isOwn: true}}
	case "claim ok":
		if mayBeTaken {
			return []any{taken}
		}
		return nil
	case "claim unknown":
		if mayBeTaken && now.by == "" {
			return []any{now, taken, taken.free(op.Policy)}
		}
		if mayBeTaken {
			return []any{now, taken}
		}
	case "claim refused":
		if mayBeTaken && now.by != "" {
			return []any{now, taken}
		}
	case "read ok":
		if now.slot != op.Slot || !now.by.has(op.Holder) {
			return nil
		}
	case "release ok", "release overtaken":
		after, may := now.released(op)
		if !may {
			return nil
		}
		return []any{after}
	case "release unknown":
		if after, may := now.released(op); may {
			return []any{now, after}
		}
	case "touch ok", "touch unknown":
		if now.by != "" || isRetained {
			return nil
		}
	case "wipe ok":
		return []any{wiped}
	case "wipe failed":
		return []any{kept}
	case "wipe unknown":
		return []any{now, wiped, kept}
	case "quarantine ok":
		return []any{kept}
	case "quarantine unknown":
		return []any{now, kept}
	// Of two that ask for the same at once, the second finds it done; later there is nothing left to do.
	case "unquarantine ok", "unquarantine unknown", "unquarantine refused":
		back := now
		back.isOutside = false
		if op.End != "ok" {
			return []any{now, back}
		}
		return []any{back}
	case "return ok", "return unknown", "return refused":
		back := now.free("clean")
		if now.by != "" || now.isOwn {
			back = now
		}
		if op.End != "ok" {
			return []any{now, back}
		}
		if back == now && !now.isDirty {
			return nil
		}
		return []any{back}
	}
	return []any{now}
}

func model(step func(any, any, any) []any, beginning any) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{beginning} },
		Step:              step,
		DescribeOperation: func(input any, _ any) string { return input.(Operation).String() },
		DescribeState:     func(state any) string { return fmt.Sprint(state) },
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

func judged(of string, step func(any, any, any) []any, beginning any, operations []Operation, folder string) *Wrong {
	history := make([]porcupine.Operation, len(operations))
	for i, op := range operations {
		end := op.Return
		if end < 0 {
			end = 1<<63 - 1
		}
		history[i] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: end}
	}
	specification := model(step, beginning)
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
	sort.Slice(operations, func(i, j int) bool { return operations[i].Call < operations[j].Call })
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
	slots, accounts, unsure := map[string][]Operation{}, map[string][]Operation{}, map[string][]Operation{}
	count := 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var op Operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			panic(err)
		}
		count++
		if op.Slot != "" && op.Kind != "brought" {
			slots[op.Slot] = append(slots[op.Slot], op)
		}
		if op.Member != "" {
			accounts[op.Member] = append(accounts[op.Member], op)
			// A decision whose answer was lost is made again, and what it did at first may have been undone between.
			if op.Kind == "quarantine" || op.Kind == "unquarantine" || op.Kind == "return" {
				op.End = "unknown"
				accounts[op.Member] = append(accounts[op.Member], op)
			}
		} else if op.Kind == "claim" && (op.End == "unknown" || op.End == "refused") {
			unsure[pool(op.Slot)] = append(unsure[pool(op.Slot)], op)
		}
	}
	wrongs := []*Wrong{}
	for name, operations := range slots {
		if wrong := judged("slot "+name, slot, ofSlot{}, operations, os.Args[1]); wrong != nil {
			wrongs = append(wrongs, wrong)
		}
	}
	for name, operations := range accounts {
		all := append(operations, unsure[pool(name)]...)
		if wrong := judged("account "+name, account, ofAccount{}, all, os.Args[1]); wrong != nil {
			wrongs = append(wrongs, wrong)
		}
	}
	answer := map[string]any{"operations": count, "slots": len(slots), "accounts": len(accounts), "wrong": wrongs}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err)
	}
}

// pool is where a slot or an account is: what stands before the last slash of its name.
func pool(name string) string { return name[:max(0, strings.LastIndex(name, "/"))] }
