package main

// Step is the next API call of a process: its program counter.
type Step uint8

const (
	Idle Step = iota
	GetSettings
	ListSeries
	GetRecordToClaim
	ListAnyRecord
	ListOwnMembers
	ListFreeMembers
	ListBothMembers
	ListFreeAfterOwn
	ListOwnAfterFree
	GetRecordOfListedToken
	RemoveListedToken
	GetRecordBeforeExhausted
	CreateRecord
	TakeMember
	GetMember
	GetRecordOfSeenToken
	RemoveSeenToken
	HealMember
	BindRecord
	MoveRecord
	DeletePendingRecord
	GetRecordAfterConflict
	GiveMemberBack
	GetMemberToGiveBack
	GetBoundMember
	GetBoundRecordAgain
	JoinRecord
	GetRecordToRead
	GetMemberToRead
	GetRecordToReadAgain
	GetRecordToRelease
	LeaveRecord
	StartReleasing
	GetReleasingMember
	ReleaseMember
	DeleteReleasingRecord
	ListMembersToSweep
	GetRecordToSweep
	RemoveSweptToken
	ListRecordsToSweep
	AbortPendingRecord
	ListRecordsBeforeMembers
	ListMembersAfterRecords
	ListMembersToClean
	ListRecordsToClean
	TakeForCleaning
	GetTakenForCleaning
	WipeAccount
	QuarantineUncleaned
	GetUncleaned
	FreeCleaned
	GetFreed
	EditByHand
	GetQuota
	ListRecordsOfQuota
	EnterQuota
	DeleteUncounted
)

// steps describes every Step: which lines of the protocol it is, the call as a trace prints it, what it does.
var steps = [...]struct {
	labels  string
	call    string
	perform func(*call)
}{
	Idle: {},

	GetSettings:              {"open", "GET settings", (*call).getSettings},
	ListSeries:               {"C0", "LIST records of the slot and of what it spilled into", (*call).listSeries},
	GetRecordToClaim:         {"C0", "GET record", (*call).getRecordToClaim},
	ListAnyRecord:            {"C1", "LIST one record, of whichever claim", (*call).listAnyRecord},
	ListOwnMembers:           {"C1 C6", "LIST own members", (*call).listOwnMembers},
	ListFreeMembers:          {"C1 C6", "LIST free members", (*call).listFreeMembers},
	ListBothMembers:          {"C1 C6", "LIST own and free members, first answer", (*call).listBothMembers},
	ListFreeAfterOwn:         {"C1 C6", "LIST own and free members, second answer", (*call).listFreeAfterOwn},
	ListOwnAfterFree:         {"C1 C6", "LIST own and free members, second answer", (*call).listOwnAfterFree},
	GetRecordOfListedToken:   {"C1 C6", "GET record of the token", (*call).getRecordOfListedToken},
	RemoveListedToken:        {"C1 C6", "CAS member: remove dead token", (*call).removeListedToken},
	GetRecordBeforeExhausted: {"C1", "GET record before reporting exhaustion", (*call).getRecordBeforeExhausted},
	CreateRecord:             {"C2", "CREATE record Pending", (*call).createRecord},
	TakeMember:               {"C3", "CAS member: label and token", (*call).takeMember},
	GetMember:                {"C4", "GET member", (*call).getMember},
	GetRecordOfSeenToken:     {"C4", "GET record of the token", (*call).getRecordOfSeenToken},
	RemoveSeenToken:          {"C4", "CAS member: remove dead token", (*call).removeSeenToken},
	HealMember:               {"C4 C8", "CAS member: put the label back", (*call).healMember},
	BindRecord:               {"C5", "CAS record Pending->Bound", (*call).bindRecord},
	MoveRecord:               {"C6", "CAS record: another member", (*call).moveRecord},
	DeletePendingRecord:      {"C6", "DELETE record, nothing is free", (*call).deletePendingRecord},
	GetRecordAfterConflict:   {"C7", "GET record after a conflict", (*call).getRecordAfterConflict},
	GiveMemberBack:           {"C7", "CAS member: remove our dead token", (*call).giveMemberBack},
	GetMemberToGiveBack:      {"C7", "GET member", (*call).getMemberToGiveBack},
	GetBoundMember:           {"C8", "GET member", (*call).getBoundMember},
	GetBoundRecordAgain:      {"C8", "GET record again", (*call).getBoundRecordAgain},
	JoinRecord:               {"C8", "CAS record: holder", (*call).joinRecord},

	GetQuota:           {"Q1", "GET quota", (*call).getQuota},
	ListRecordsOfQuota: {"Q1", "LIST records of the type", (*call).listRecordsOfQuota},
	EnterQuota:         {"Q2", "CAS quota: enter the record", (*call).enterQuota},
	DeleteUncounted:    {"Q3", "DELETE record, the quota is used up", (*call).deleteUncounted},

	GetRecordToRead:      {"read", "GET record", (*call).getRecordToRead},
	GetMemberToRead:      {"read", "GET member", (*call).getMemberToRead},
	GetRecordToReadAgain: {"read", "GET record again", (*call).getRecordToReadAgain},

	GetRecordToRelease:    {"R0", "GET record", (*call).getRecordToRelease},
	LeaveRecord:           {"R1", "CAS record: remove holder", (*call).leaveRecord},
	StartReleasing:        {"R2", "CAS record ->Releasing", (*call).startReleasing},
	GetReleasingMember:    {"X1", "GET member", (*call).getReleasingMember},
	ReleaseMember:         {"X2", "CAS member: apply the policy", (*call).releaseMember},
	DeleteReleasingRecord: {"X3", "DELETE record", (*call).deleteReleasingRecord},

	ListMembersToSweep:       {"S1", "LIST members", (*call).listMembersToSweep},
	GetRecordToSweep:         {"S2", "GET record of the token", (*call).getRecordToSweep},
	RemoveSweptToken:         {"S2", "CAS member: remove dead token", (*call).removeSweptToken},
	ListRecordsToSweep:       {"S3", "LIST records", (*call).listRecordsToSweep},
	AbortPendingRecord:       {"S3", "CAS record Pending->Releasing", (*call).abortPendingRecord},
	ListRecordsBeforeMembers: {"W7", "LIST records", (*call).listRecordsBeforeMembers},
	ListMembersAfterRecords:  {"W7", "LIST members", (*call).listMembersAfterRecords},

	ListMembersToClean:  {"K1", "LIST members", (*call).listMembersToClean},
	ListRecordsToClean:  {"K1", "LIST records", (*call).listRecordsToClean},
	TakeForCleaning:     {"K2", "CAS member ->cleaning", (*call).takeForCleaning},
	GetTakenForCleaning: {"K2", "GET member", (*call).getTakenForCleaning},
	WipeAccount:         {"K3", "wipe the account of", (*call).wipeAccount},
	QuarantineUncleaned: {"K3", "CAS member cleaning->quarantined", (*call).quarantineUncleaned},
	GetUncleaned:        {"K3", "GET member", (*call).getUncleaned},
	FreeCleaned:         {"K4", "CAS member cleaning->usable", (*call).freeCleaned},
	GetFreed:            {"K4", "GET member", (*call).getFreed},

	EditByHand: {"operator", "", (*call).editByHand},
}

// firstSteps begin an operation: nothing has been read yet.
const firstSteps uint64 = 1<<GetSettings | 1<<ListSeries | 1<<GetRecordToClaim | 1<<GetRecordToRead | 1<<GetRecordToRelease | 1<<ListMembersToSweep |
	1<<ListRecordsToSweep | 1<<ListRecordsBeforeMembers | 1<<ListMembersToClean | 1<<EditByHand

const memberlessSteps uint64 = firstSteps | 1<<Idle | 1<<ListAnyRecord | 1<<ListOwnMembers | 1<<ListFreeMembers |
	1<<ListBothMembers | 1<<ListFreeAfterOwn |
	1<<GetRecordBeforeExhausted | 1<<DeletePendingRecord

func (step Step) isFirst() bool { return firstSteps>>step&1 != 0 }

// namesMember tells whether a process at this step has a member in mind; elsewhere the number means nothing.
func (step Step) namesMember() bool { return memberlessSteps>>step&1 == 0 }
