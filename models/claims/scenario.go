package main

// OperationKind is what a process does next.
type OperationKind uint8

const (
	Claim OperationKind = iota
	Read
	Release
	SweepMembers
	SweepRecords
	Clean

	// One hand edit each, at any moment, of any object it applies to.
	EditDeleteMember
	EditStripLabel
	EditRelabel // from tenant T to tenant U
	EditQuarantine
	EditMarkDirty
	EditDeleteRecord
	EditStripEverything // label and annotations
	EditUnquarantine
	EditDecommission
	EditRestoreRecord // a Bound record comes back from a backup: the same text under another uid
	EditLoseSettings
	EditReturn       // of a retained member to the pool
	EditTakeTokenOff // as a release with policy clean does, but before the record says so
)

var operationNames = [...]string{
	Claim: "claim", Read: "read", Release: "release",
	SweepMembers: "sweep", SweepRecords: "sweepRecords", Clean: "clean",
	EditDeleteMember: "OP:delete", EditStripLabel: "OP:strip-label", EditRelabel: "OP:relabel",
	EditQuarantine: "OP:quarantine", EditMarkDirty: "OP:dirty", EditDeleteRecord: "OP:delete-record",
	EditStripEverything: "OP:strip-all", EditUnquarantine: "OP:unquarantine",
	EditDecommission: "OP:decommission", EditRestoreRecord: "OP:restore", EditLoseSettings: "OP:lose-settings", EditReturn: "OP:return",
	EditTakeTokenOff: "OP:take-token-off",
}

func (kind OperationKind) isEdit() bool { return kind >= EditDeleteMember }

// Operation is one entry of a script.
type Operation struct {
	Kind   OperationKind
	Record uint8
	Holder Holders
	Shows  uint8 // of a release: 1 + the operation of its script that returned the sequence number it shows
}

// latest says that a release shows no sequence number: it means whatever its holder has.
const latest = 0

// Script is what one process does, in this order; after a crash it starts the current operation over.
type Script []Operation

// Policy says what becomes of a pool member when its last holder leaves.
type Policy uint8

const (
	PolicyRelease Policy = iota
	PolicyRetain
	PolicyClean
	PolicyQuarantine
)

var policyNames = [...]string{
	PolicyRelease: "release", PolicyRetain: "retain", PolicyClean: "clean", PolicyQuarantine: "quarantine",
}

// Faults are the things that may go wrong, each any number of times and at any moment.
type Faults struct {
	Crashes           bool
	LostAnswers       bool  // a write was applied or not, and its caller sees an error either way
	LateWrites        bool  // one write at a time may be applied long after its caller saw an error
	FailedWipes       bool  // a cleaner may be unable to wipe an account
	AbandonedReleases bool  // a crashed release may be given up instead of run again
	Spared            uint8 // bit i: process i neither crashes nor loses answers
}

// Scenario is one run of the checker: who does what to which members, and what may go wrong.
type Scenario struct {
	Name        string
	RecordCount int
	MemberCount int
	TenantOf    [maxRecords]Tenant // per record
	Scripts     []Script           // per process
	Members     [maxMembers]Member
	Policy      Policy
	Shared      bool // members take Capacity claims each, one record per consumer
	Capacity    int
	HolderLimit int     // of one claim; 0 is none
	Counted     Holders // of the one consumer that has a quota
	Quota       int     // accounts that consumer may have at most
	Spill       bool    // a claim of recordT goes to recordT2 when the holders of recordT are as many as its limit
	Displaced   uint8   // 1 + the record that a request of recordT means under other keys; 0 where none are lost
	TakeOver    bool    // an operator lets a cleaner take over another's work; it rotates the credential first
	Faults      Faults
	Mistake     Mistake

	// ListsSideBySide: find asks for both lists at once, and only without a result one after the other.
	ListsSideBySide bool

	// UnfencedReclaims: a repeated claim of a known holder writes nothing (allowed where no write comes late).
	UnfencedReclaims bool

	// OneHolder: processes claim for one holder id; the claim of the one that claimed last is the one that counts.
	OneHolder bool

	// What the scenario is checked for.
	NoOrphans         bool // nothing may be left for a sweep
	EvidenceDestroyed bool // an operator removed what I5 rests upon
}

func (s *Scenario) initial() State {
	state := State{Members: s.Members}
	for process := range s.Scripts {
		s.begin(&state, process)
	}
	return state
}

func (s *Scenario) isDone(state *State, process int) bool {
	return int(state.Processes[process].Operation) >= len(s.Scripts[process])
}

func (s *Scenario) operation(state *State, process int) Operation {
	return s.placed(state, process, s.Scripts[process][state.Processes[process].Operation])
}

// placed gives an operation the record that its request means under the keys its process knows.
func (s *Scenario) placed(state *State, process int, operation Operation) Operation {
	if s.isPlaced(operation) && state.Processes[process].Keys == OtherKeys {
		operation.Record = s.Displaced - 1
	}
	if s.Spill && operation.Record == recordT && state.Processes[process].Spilled {
		operation.Record = recordT2
	}
	return operation
}

// spills tells whether the current operation of a process is a claim that looks first where its place is.
func (s *Scenario) spills(state *State, process int) bool {
	if !s.Spill || s.isDone(state, process) {
		return false
	}
	operation := s.Scripts[process][state.Processes[process].Operation]
	return operation.Kind == Claim && operation.Record == recordT
}

// begin starts the current operation of a process over, with nothing known but what outlives a crash.
func (s *Scenario) begin(state *State, process int) {
	s.restart(state, process)
	if s.spills(state, process) {
		state.Processes[process].Step = ListSeries
	}
}

func (s *Scenario) isPlaced(operation Operation) bool {
	return s.Displaced != 0 && operation.Kind == Claim && operation.Record == recordT
}

func (s *Scenario) isSpared(process int) bool { return s.Faults.Spared&(1<<process) != 0 }

// restart puts a process back to the start of its current operation, with nothing read.
func (s *Scenario) restart(state *State, process int) {
	self := &state.Processes[process]
	*self = Process{
		Operation: self.Operation, Held: self.Held, Fences: self.Fences, Keys: self.Keys, MayBegin: self.MayBegin,
		Spilled: self.Spilled, HeldSpilled: self.HeldSpilled,
	}
	if !s.isDone(state, process) {
		operation := s.operation(state, process)
		self.Record = operation.Record
		self.Step = s.firstStep(operation.Kind)
		if s.isPlaced(operation) && self.Keys == Unopened {
			self.Step = GetSettings
		}
	}
}

// finish ends the current operation of a process.
func (s *Scenario) finish(state *State, process int) {
	state.Processes[process].Operation++
	s.begin(state, process)
}

func (s *Scenario) firstStep(kind OperationKind) Step {
	switch kind {
	case Claim:
		return GetRecordToClaim
	case Read:
		return GetRecordToRead
	case Release:
		return GetRecordToRelease
	case SweepMembers:
		if s.Mistake == W7 {
			return ListRecordsBeforeMembers
		}
		return ListMembersToSweep
	case SweepRecords:
		return ListRecordsToSweep
	case Clean:
		return ListMembersToClean
	}
	return EditByHand
}
