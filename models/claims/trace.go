package main

import (
	"fmt"
	"slices"
	"strings"
)

// traceViolation replays the shortest way from the initial state to the violation.
func (e *exploration) traceViolation() []string {
	lines, state := e.replay(e.initial(), e.pathTo(e.brokeAt))
	last := e.canonical.fingerprint(&e.brokeTo)
	for _, transition := range e.call.successors(&state) {
		if e.canonical.fingerprint(&transition.State) == last {
			return append(lines, e.line(&state, &transition))
		}
	}
	return lines // a process is stuck: there is no step
}

// traceCycle replays the way to a cycle and once around it. incoming: not 0 for states on a cycle or behind one.
func (e *exploration) traceCycle(incoming []uint32) []string {
	cycle := e.findCycle(incoming)
	lines, state := e.replay(e.initial(), e.pathTo(cycle[0]))
	lines = append(lines, "-- from here on for ever:")
	around, _ := e.replay(state, append(cycle[1:], cycle[0]))
	return append(lines, around...)
}

// findCycle walks from a state that could not be removed to others of the kind until one comes back.
func (e *exploration) findCycle(incoming []uint32) []uint32 {
	const unseen, onPath, left = 0, 1, 2
	mark := make([]uint8, len(incoming))
	var path []uint32
	var visit func(id uint32) []uint32
	visit = func(id uint32) []uint32 {
		mark[id] = onPath
		path = append(path, id)
		for _, target := range e.targetsOf(id) {
			if mark[target] == onPath {
				return path[slices.Index(path, target):]
			}
			if mark[target] == unseen && incoming[target] > 0 {
				if cycle := visit(target); cycle != nil {
					return cycle
				}
			}
		}
		mark[id] = left
		path = path[:len(path)-1]
		return nil
	}
	for id := range incoming {
		if incoming[id] > 0 && mark[id] == unseen {
			if cycle := visit(uint32(id)); cycle != nil {
				return cycle
			}
		}
	}
	panic("a graph that cannot be sorted has no cycle")
}

func (e *exploration) pathTo(id uint32) []uint32 {
	var path []uint32
	for ; id != 0; id = e.parents[id] {
		path = append(path, id)
	}
	slices.Reverse(path)
	return path
}

// replay follows numbered states from a state, one transition each.
func (e *exploration) replay(state State, path []uint32) ([]string, State) {
	var lines []string
	for _, id := range path {
		transition := e.transitionTo(&state, id)
		lines = append(lines, e.line(&state, transition))
		state = transition.State
	}
	return lines, state
}

func (e *exploration) transitionTo(state *State, id uint32) *Transition {
	transitions := e.call.successors(state)
	for i := range transitions {
		place := e.table.place(e.canonical.fingerprint(&transitions[i].State))
		if e.table.ids[place] == id {
			return &transitions[i]
		}
	}
	panic("a state that was reached once cannot be reached again")
}

// line tells one step: who, which call, how it ended, and how the server is afterwards.
func (e *exploration) line(before *State, transition *Transition) string {
	who := e.processName(transition.Process)
	if transition.Outcome == lateOutcome {
		return fmt.Sprintf("%-9s %s of %s | %s", "", lateOutcome, who, e.show(&transition.State))
	}
	self, selfAfter := &before.Processes[transition.Process], &transition.State.Processes[transition.Process]
	operation := e.operation(before, transition.Process)
	step := steps[transition.Step]
	what := step.call
	if strings.Contains(what, "member") && self.Step.namesMember() || transition.Step == WipeAccount {
		what += " " + memberName(self.Member)
	}
	what = strings.TrimSpace(what + " " + transition.Outcome)
	if selfAfter.Operation != self.Operation {
		if operation.Kind == Claim && selfAfter.Held != 0 {
			what += " == claim returns " + memberName(selfAfter.Held-1)
		} else {
			what += " == " + operationNames[operation.Kind] + " ends"
		}
	}
	name, after := operationNames[operation.Kind], e.show(&transition.State)
	return fmt.Sprintf("%-9s %-8s %-6s %s | %s", who, name, step.labels, what, after)
}

func (s *Scenario) processName(process int) string {
	first := s.Scripts[process][0]
	switch {
	case first.Kind.isEdit():
		return "operator"
	case first.Kind == Clean:
		return fmt.Sprintf("cleaner%d", process)
	case first.Kind == SweepMembers || first.Kind == SweepRecords:
		return fmt.Sprintf("sweep%d", process)
	}
	return fmt.Sprintf("p%d(%s)", process, tenantName(s.TenantOf[first.Record]))
}

func (s *Scenario) show(state *State) string {
	var shown []string
	for number := range uint8(s.RecordCount) {
		shown = append(shown, recordName(number)+"="+showRecord(&state.Records[number]))
	}
	for number := range uint8(s.MemberCount) {
		shown = append(shown, memberName(number)+"="+showMember(&state.Members[number]))
	}
	return strings.Join(shown, " ")
}

func showRecord(record *Record) string {
	if record.Phase == Absent {
		return "-"
	}
	phase := [...]string{Pending: "Pending", Bound: "Bound", Releasing: "Releasing"}[record.Phase]
	return fmt.Sprintf("%s(%s,t%d,holders %04b)", phase, memberName(record.Member), record.Token, record.Holders)
}

func showMember(member *Member) string {
	if !member.Exists {
		return "gone"
	}
	shown := "free"
	if member.Tenant != 0 {
		shown = tenantName(member.Tenant)
	}
	for _, mark := range member.Marks[:member.count()] {
		shown += fmt.Sprintf("/t%d", mark.Token)
	}
	conditions := [...]string{Usable: "", Dirty: "/dirty", Cleaning: "/cleaning", Quarantined: "/quarantined"}
	return shown + conditions[member.Condition]
}

func memberName(number uint8) string  { return fmt.Sprintf("M%d", number) }
func recordName(number uint8) string  { return fmt.Sprintf("R%d", number) }
func tenantName(tenant Tenant) string { return string(rune('S' + tenant)) }
