package main

import "math/bits"

// Bounds of a State. It is one comparable value of fixed size: millions of them are copied and compared.
const (
	maxRecords   = 3
	maxMembers   = 3
	maxProcesses = 5
	maxTokens    = 2 // on one shared member; a dedicated member has at most one
)

// Phase is how far a record has come.
type Phase uint8

const (
	Absent Phase = iota
	Pending
	Bound
	Releasing
)

// Condition is the pool-state of a member.
type Condition uint8

const (
	Usable Condition = iota
	Dirty
	Cleaning
	Quarantined
)

// Origin says where a member came from that is claimed, or was and has an owner still.
type Origin uint8

const (
	NoOrigin Origin = iota
	FromPool
	FromOwner // bring-your-own: it never returns to the pool
	Retained  // of the pool, and its tenant's after a release with policy retain
)

// Before is what a quarantined member remembers of the time before.
type Before uint8

const (
	WasUsable Before = iota
	WasDirty
	GivenUp // by an operator, who alone takes that back
)

// Keys are the partition keys under which a process opened the pool: they are part of a record's name.
type Keys uint8

const (
	Unopened Keys = iota
	DeclaredKeys
	OtherKeys // the settings were lost or changed
)

// Tenant is an owner; 0 is nobody.
type Tenant uint8

// Token is a record's uid and attempt, or a cleaner's run: a symbol compared only for equality; 0 is none.
// Symbols are renamed canonically, so a finite number of them serves any number of crashes and re-runs.
type Token uint8

// Holders is a set of holder ids.
type Holders uint8

const (
	noHolder Holders = 0
	everyone Holders = 0xff
)

// MemberSet is a set of member numbers.
type MemberSet uint8

func (set MemberSet) has(member uint8) bool          { return set&(1<<member) != 0 }
func (set MemberSet) with(member uint8) MemberSet    { return set | 1<<member }
func (holders Holders) has(holder Holders) bool      { return holders&holder != 0 }
func (holders Holders) only(holder Holders) bool     { return holders&^holder == 0 }
func (holders Holders) with(holder Holders) Holders  { return holders | holder }
func (holders Holders) minus(holder Holders) Holders { return holders &^ holder }
func (holders Holders) count() int                   { return bits.OnesCount8(uint8(holders)) }

// Record is the ConfigMap of one (partition, tenant, slot). The zero value is an absent one.
type Record struct {
	Phase    Phase
	Member   uint8
	Token    Token // T(R)
	Holders  Holders
	WasBound bool // what a Releasing record says of the time before: memberUid names the member it was bound to
}

// Mark is a record's token on a member, with the record it names.
type Mark struct {
	Token  Token
	Record uint8
}

// Member is one Secret's metadata. The zero value is a deleted one.
type Member struct {
	Exists        bool
	Tenant        Tenant
	Condition     Condition
	Origin        Origin
	CleaningToken Token
	Cleaner       uint8 // 1 + the process whose run took it for cleaning
	Before        Before
	Soiled        bool // of the account, not of the Secret: it was used, and nobody wiped it since
	Kept          bool // of the account: its tenant retained it, and no claim of it was bound since
	Marks         [maxTokens]Mark
}

// Process is what one process knows. resourceVersions are modelled exactly, without numbers: a cached object
// is fresh until somebody else writes it, and a CAS succeeds if and only if it is fresh.
type Process struct {
	Operation    uint8 // index in its script
	Step         Step  // its next call
	Record       uint8
	Member       uint8
	Token        Token // T(R) as it was read or made; of a cleaner, its cleaning token
	RecordFresh  bool
	MemberFresh  bool
	OtherToken   Token // found on a member, to be judged dead or alive
	OtherRecord  uint8 // the record OtherToken names
	Unavailable  uint8 // 1 + the member its Pending record names and could not get
	Skipped      MemberSet
	HolderListed bool // this holder is in the record as it was read
	Moving       bool // looking for another member for a Pending record
	LabelledHere bool // this process wrote the token itself
	SeenNamed    bool // W7: the record list, read first, named this member
	Held         uint8
	Keys         Keys      // what it read of the settings when it opened the pool
	QuotaFresh   bool      // nobody wrote the quota since this process read it
	RecordGone   bool      // the record it read or made is deleted, whatever bears its name now
	Pruned       uint8     // entries of the quota it saw to be gone
	Unseen       RecordSet // W34: records that were not there before the quota was read
	Then         Step      // after it entered the quota
	Spilled      bool      // its claim of recordT, with spill, is on recordT2
	HeldSpilled  bool      // so was the claim it holds
	MayBegin     bool      // it saw that no claim was made under other keys, and does not look again
	Fences       uint8     // bit i: nobody overtook the sequence number that operation i of the script returned
}

// WriteKind says what an accepted write does to the server.
type WriteKind uint8

const (
	NoWrite WriteKind = iota
	RecordWrite
	MemberWrite
	RecordCreate
	QuotaWrite
)

// InFlight is one write the server has received but not applied, although its caller saw an error.
type InFlight struct {
	Kind    WriteKind
	Object  uint8 // number of the record or member
	Process uint8
	Record  Record
	Raises  Holders // whose sequence numbers the record write raises
	Member  Member
}

// Touch says what an operator did to a member by hand.
type Touch uint8

const (
	Untouched Touch = iota
	Edited
	EvidenceRemoved
)

// State is the whole system between two API calls.
type State struct {
	InFlight         InFlight
	Records          [maxRecords]Record
	Members          [maxMembers]Member
	Processes        [maxProcesses]Process
	Touched          [maxMembers]Touch
	RecordsDestroyed [maxRecords]bool
	RecordsRestored  [maxRecords]bool
	SettingsLost     bool
	Quota            Quota
}

func (member *Member) count() int {
	count := 0
	for _, mark := range member.Marks {
		if mark.Token != 0 {
			count++
		}
	}
	return count
}

func (member *Member) bears(token Token) bool {
	if token == 0 {
		return false
	}
	for _, mark := range member.Marks {
		if mark.Token == token {
			return true
		}
	}
	return false
}

// markOf gives the token of a record's claim on a shared member, or nil.
func (member *Member) markOf(record uint8) *Mark {
	for i := range member.Marks {
		if member.Marks[i].Token != 0 && member.Marks[i].Record == record {
			return &member.Marks[i]
		}
	}
	return nil
}

func (member *Member) add(token Token, record uint8) {
	for i := range member.Marks {
		if member.Marks[i].Token == 0 {
			member.Marks[i] = Mark{token, record}
			return
		}
	}
	panic("a member took more tokens than the model has room for")
}

func (member *Member) drop(token Token) {
	kept := [maxTokens]Mark{}
	count := 0
	for _, mark := range member.Marks {
		if mark.Token != 0 && mark.Token != token {
			kept[count] = mark
			count++
		}
	}
	member.Marks = kept
}
