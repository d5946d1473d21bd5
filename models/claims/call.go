package main

// Transition is one step of the system: who did it, how it ended, and the state it led to.
type Transition struct {
	State     State
	Process   int
	Step      Step
	Outcome   string
	Fault     bool
	Violation *Violation
}

// call is the next API call of one process in one state. Its methods, one per Step, add every way it can end.
type call struct {
	*Scenario
	before      *State
	process     int
	step        Step
	operation   Operation
	transitions []Transition
}

// successors gives every transition out of a state. The result is overwritten by the next use.
func (c *call) successors(before *State) []Transition {
	c.before, c.transitions = before, c.transitions[:0]
	if before.InFlight.Kind != NoWrite {
		c.applyLateWrite()
	}
	for process := range c.Scripts {
		if c.isDone(before, process) {
			continue
		}
		c.process, c.step = process, before.Processes[process].Step
		c.operation = c.Scenario.operation(before, process)
		steps[c.step].perform(c)
		if c.Faults.Crashes && !c.isSpared(process) {
			c.crash()
		}
	}
	return c.transitions
}

// self is the process as it is before the call.
func (c *call) self() *Process { return &c.before.Processes[c.process] }

// tenant is the one this process claims for.
func (c *call) tenant() Tenant { return c.TenantOf[c.self().Record] }

func (c *call) add(outcome string, isFault bool) (*State, *Process, *Transition) {
	c.transitions = append(c.transitions, Transition{
		State: *c.before, Process: c.process, Step: c.step, Outcome: outcome, Fault: isFault,
	})
	transition := &c.transitions[len(c.transitions)-1]
	return &transition.State, &transition.State.Processes[c.process], transition
}

// read adds the transition of a call that changes nothing on the server.
func (c *call) read(outcome string, then func(next *State, self *Process) *Violation) {
	next, self, transition := c.add(outcome, false)
	transition.Violation = then(next, self)
}

// continuation is what a process does with the answer of a write.
type continuation func(next *State, self *Process)

// casRecord replaces the record this process read, or deletes it (the zero Record). raises: whose sequence
// numbers the write raises.
func (c *call) casRecord(raises Holders, change func(*State, *Process) Record, done, conflict continuation) {
	c.write(RecordWrite, raises, c.self().RecordFresh, func(next *State, self *Process) *Violation {
		c.writeRecord(next, self.Record, change(next, self), raises, c.process)
		return nil
	}, done, conflict)
}

// casMember replaces the member this process read.
func (c *call) casMember(change func(*State, *Process) Member, done, conflict continuation) {
	c.write(MemberWrite, noHolder, c.self().MemberFresh, func(next *State, self *Process) *Violation {
		return c.writeMember(next, self.Member, change(next, self), c.process)
	}, done, conflict)
}

// write adds every way a write can end. The caller of one whose answer is lost goes on as after a conflict.
func (c *call) write(
	kind WriteKind, raises Holders, isAccepted bool,
	apply func(*State, *Process) *Violation, done, conflict continuation,
) {
	if isAccepted {
		next, self, transition := c.add("-> ok", false)
		transition.Violation = apply(next, self)
		done(next, self)
	} else {
		next, self, _ := c.add("-> conflict", false)
		conflict(next, self)
	}
	if !c.Faults.LostAnswers || c.isSpared(c.process) {
		return
	}
	if isAccepted {
		next, self, transition := c.add("-> applied, ANSWER LOST", true)
		transition.Violation = apply(next, self)
		switch kind { // the caller does not learn the new resourceVersion
		case MemberWrite:
			self.MemberFresh = false
		case QuotaWrite:
			self.QuotaFresh = false
		default:
			self.RecordFresh = false
		}
		conflict(next, self)
	}
	if isAccepted && c.Faults.LateWrites && c.before.InFlight.Kind == NoWrite {
		next, self, _ := c.add("-> error, STILL IN FLIGHT", true)
		next.InFlight = c.delayed(kind, raises, apply)
		conflict(next, self)
	}
	next, self, _ := c.add("-> error, NOT APPLIED", true)
	conflict(next, self)
}

func (c *call) delayed(kind WriteKind, raises Holders, apply func(*State, *Process) *Violation) InFlight {
	applied := *c.before
	apply(&applied, &applied.Processes[c.process])
	late := InFlight{Kind: kind, Process: uint8(c.process)}
	if kind == MemberWrite {
		late.Object = c.self().Member
		late.Member = applied.Members[late.Object]
		return late
	}
	late.Object = c.self().Record
	late.Record, late.Raises = applied.Records[late.Object], raises
	if kind == RecordCreate {
		late.Record.Token = 0 // the server makes the uid when it executes the write
	}
	return late
}

const lateOutcome = "the server applies a late write"

func (c *call) applyLateWrite() {
	late := c.before.InFlight
	c.process, c.step = int(late.Process), Idle
	next, _, transition := c.add(lateOutcome, true)
	next.InFlight = InFlight{}
	switch late.Kind {
	case RecordWrite:
		c.writeRecord(next, late.Object, late.Record, late.Raises, server)
	case MemberWrite:
		transition.Violation = c.writeMember(next, late.Object, late.Member, server)
	case RecordCreate:
		if next.Records[late.Object].Phase == Absent {
			late.Record.Token = c.newToken(next)
			c.writeRecord(next, late.Object, late.Record, late.Raises, server)
		}
	}
}

// crash loses all the process knows. It is run again, or its user gives a release up and goes on.
func (c *call) crash() {
	next := *c.before
	next.Processes[c.process].Keys, next.Processes[c.process].MayBegin = Unopened, false
	if c.Faults.AbandonedReleases && c.operation.Kind == Release && !c.step.isFirst() {
		c.finish(&next, c.process)
	} else {
		c.begin(&next, c.process)
	}
	if next != *c.before {
		state, _, _ := c.add("CRASH before", true)
		*state = next
	}
}

// restart and finish as continuations of this process.
func (c *call) again(next *State, _ *Process) { c.restart(next, c.process) }
func (c *call) end(next *State, _ *Process)   { c.finish(next, c.process) }
