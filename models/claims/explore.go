package main

import "time"

// Limits of an exploration.
type Limits struct {
	MaxStates   int
	FoldMembers bool // take states for one that differ only in the numbers of equal members
}

// Result is what exploring a scenario found.
type Result struct {
	States      int
	Transitions int
	Depth       int // levels of the breadth-first search
	Ends        int // states in which every script has ended
	OrphanEnds  int // of them, those in which something waits for a sweep
	LongestTail int // the most steps without a fault, from any state to the end
	Violation   *Violation
	Trace       []string // the shortest way to the violation
	IsTruncated bool
	Duration    time.Duration
}

// exploration is a breadth-first search through every reachable state. States are numbered as they are found.
type exploration struct {
	*Scenario
	call      *call
	canonical *canonicalizer
	table     *fingerprintTable
	parents   []uint32
	// The graph of transitions without a fault: state i leads to targets[offsets[i]:offsets[i+1]].
	offsets []uint64
	targets []uint32
	next    []State
	result  Result
	brokeAt uint32 // the state, and the state after it, of the first violation
	brokeTo State
}

// explore visits every state of a scenario, or stops at the first violation.
func explore(s *Scenario, limits Limits) Result {
	began := time.Now()
	e := &exploration{
		Scenario:  s,
		call:      &call{Scenario: s},
		canonical: newCanonicalizer(s, limits.FoldMembers),
		table:     newFingerprintTable(),
	}
	e.search(limits.MaxStates)
	e.result.States = len(e.parents)
	switch {
	case e.result.Violation != nil:
		e.result.Trace = e.traceViolation()
	case !e.result.IsTruncated:
		e.checkProgress()
	}
	e.result.Duration = time.Since(began)
	return e.result
}

func (e *exploration) search(maxStates int) {
	initial := e.initial()
	e.table.number(e.canonical.fingerprint(&initial))
	e.parents = append(e.parents, 0)
	expanded := uint32(0)
	for level := []State{initial}; len(level) > 0; {
		e.result.Depth++
		for i := range level {
			e.expand(expanded, &level[i])
			expanded++
			if e.result.Violation != nil {
				return
			}
		}
		level, e.next = e.next, level[:0]
		if len(e.parents) > maxStates {
			e.result.IsTruncated = true
			return
		}
	}
	e.offsets = append(e.offsets, uint64(len(e.targets)))
}

func (e *exploration) expand(id uint32, state *State) {
	e.offsets = append(e.offsets, uint64(len(e.targets)))
	var enabled [maxProcesses]bool
	for i, transitions := 0, e.call.successors(state); i < len(transitions); i++ {
		transition := &transitions[i]
		e.result.Transitions++
		target, isNew := e.table.number(e.canonical.fingerprint(&transition.State))
		if !transition.Fault {
			enabled[transition.Process] = true
			e.targets = append(e.targets, target)
		}
		if transition.Violation != nil {
			e.fail(id, &transition.State, transition.Violation)
		}
		if isNew {
			e.parents = append(e.parents, id)
			e.next = append(e.next, transition.State)
			if violation := e.judgeNew(&transition.State); violation != nil {
				e.fail(id, &transition.State, violation)
			}
		}
	}
	for process := range e.Scripts {
		mayWait := e.isDone(state, process) || e.operation(state, process).Kind.isEdit()
		if !mayWait && !enabled[process] {
			e.fail(id, state, stuck)
		}
	}
}

func (e *exploration) judgeNew(state *State) *Violation {
	if violation := e.judge(state); violation != nil {
		return violation
	}
	if !e.isAtRest(state) {
		return nil
	}
	e.result.Ends++
	if state.InFlight.Kind != NoWrite {
		return nil
	}
	violation, hasOrphan := e.judgeAtRest(state)
	if hasOrphan {
		e.result.OrphanEnds++
	}
	return violation
}

func (e *exploration) fail(at uint32, to *State, violation *Violation) {
	if e.result.Violation == nil {
		e.result.Violation, e.brokeAt, e.brokeTo = violation, at, *to
	}
}

// checkProgress checks I9: the graph of steps without a fault has no cycle. It removes states in topological
// order; what cannot be removed lies on a cycle or behind one.
func (e *exploration) checkProgress() {
	incoming := make([]uint32, len(e.parents))
	for _, target := range e.targets {
		incoming[target]++
	}
	longest := make([]uint16, len(e.parents))
	var ready []uint32
	for id, count := range incoming {
		if count == 0 {
			ready = append(ready, uint32(id))
		}
	}
	removed := 0
	for len(ready) > 0 {
		id := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		removed++
		e.result.LongestTail = max(e.result.LongestTail, int(longest[id]))
		for _, target := range e.targetsOf(id) {
			longest[target] = max(longest[target], longest[id]+1)
			incoming[target]--
			if incoming[target] == 0 {
				ready = append(ready, target)
			}
		}
	}
	if removed < len(e.parents) {
		e.result.Violation = endless
		e.result.Trace = e.traceCycle(incoming)
	}
}

func (e *exploration) targetsOf(id uint32) []uint32 { return e.targets[e.offsets[id]:e.offsets[id+1]] }
