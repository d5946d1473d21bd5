package main

// Violation is a broken invariant and how it shows.
type Violation struct{ Invariant, Text string }

func (violation *Violation) String() string { return violation.Invariant + ": " + violation.Text }

// I1: no write of the protocol takes a member from its owner, or a live token off a member.
var (
	ownerChanged     = &Violation{"I1", "the owner of a member changed without passing through free"}
	liveTokenRemoved = &Violation{"I1", "a live token was removed from a member"}
	restoredRemoved  = &Violation{"I1", "the token of a claim that was restored was removed from its member"}
)

// I2: all holders of one claim hold the same member, two slots of a tenant never the same one.
var (
	holdersDiffer = &Violation{"I2", "two holders of one claim hold different members"}
	slotsShare    = &Violation{"I2", "two slots of one tenant hold the same member"}
	placeTwice    = &Violation{"I2", "a holder has two places in what one slot spilled into"}
	slotTwice     = &Violation{"I2", "one slot of a tenant holds two claims"}
)

// I3, I7: while a claim is held its record is Bound, names the member and lists the holder, and the member
// carries the token; so nobody is ever told that it is lost or gone.
var (
	heldNotCarried     = &Violation{"I3", "a held member no longer carries its claim"}
	heldRecordChanged  = &Violation{"I3", "the record of a held claim changed under its holder"}
	boundButNotCarried = &Violation{"I3", "a member does not carry its Bound record although no operator touched it"}
	lostButUntouched   = &Violation{"I7", "a member was reported lost although no operator touched it"}
	heldButGone        = &Violation{"I7", "a held claim was reported as gone"}
)

// I4: at rest nothing is half done, nothing is owned without a claim, and every tenant has what it brought.
var (
	halfDone      = &Violation{"I4", "a record is left half done"}
	ownedNameless = &Violation{"I4", "a pool member is owned without a token and without a record"}
	keptForEver   = &Violation{"I4", "a pool member that its tenant retained has no way back to the pool"}
	ownLost       = &Violation{"I4", "a member that a tenant brought lost its tenant"}
	stillListed   = &Violation{"I4", "a holder that released is still listed"}
	orphanLeft    = &Violation{"I4", "a member is owned but no record names it (until a sweep)"}
)

// I5: two tenants never hold the same dedicated member.
var tenantsShare = &Violation{"I5", "two tenants hold the same dedicated member"}

// I6: exhaustion is reported only when it is true.
var (
	exhaustedWithFree  = &Violation{"I6", "exhaustion was found although a member is free"}
	exhaustedWhenBound = &Violation{"I6", "exhaustion was reported while the claim is bound"}
)

// I8: nobody wipes or frees a claimed member, and only the current cleaning run frees one.
var (
	freedByStranger = &Violation{"I8", "a member was freed without its current cleaning token"}
	freedClaimed    = &Violation{"I8", "a cleaner freed a claimed member"}
	wipedClaimed    = &Violation{"I8", "a cleaner wiped a claimed member"}
)

// I9: every process has a next step, and without further faults all of them come to an end.
var (
	stuck   = &Violation{"I9", "a process has no enabled step"}
	endless = &Violation{"I9", "a cycle of steps without a fault: processes may go on for ever"}
)

// I10: limits are hard.
var (
	capacityExceeded = &Violation{"I10", "a shared member has more claims than its capacity"}
	limitExceeded    = &Violation{"I10", "a claim has more holders than its limit"}
)

// I11: nobody gets an account uncleaned, nor one that an operator gave up.
var (
	usableUncleaned = &Violation{"I11", "an account became usable although nobody wiped it"}
	givenUpReturned = &Violation{"I11", "an account came back that an operator gave up"}
)

// I12: a consumer never has more accounts than its quota.
var quotaExceeded = &Violation{"I12", "a consumer has more accounts than its quota"}

// I13: an account that its tenant retained stays so, until that tenant had it again or an operator decides.
var retainedLeft = &Violation{"I13", "an account that its tenant retained left it by a claim that was never bound"}

// judgeMemberWrite checks I1, I8 and I13 of one write by the protocol, before it is stored.
func (s *Scenario) judgeMemberWrite(state *State, member uint8, value *Member, writer int) *Violation {
	old := &state.Members[member]
	var violation *Violation
	if old.Tenant != 0 && value.Tenant != 0 && old.Tenant != value.Tenant {
		violation = ownerChanged
	}
	for _, mark := range old.Marks {
		if mark.Token == 0 || value.bears(mark.Token) || state.RecordsDestroyed[mark.Record] {
			continue
		}
		// Where an operator strips label and token, a dead claimer can leave the same picture behind.
		if state.RecordsRestored[mark.Record] && s.isRestored(state, member, mark) {
			violation = restoredRemoved
		}
		record := &state.Records[mark.Record]
		isLive := record.Phase == Bound || record.Phase == Pending && record.Member == member
		if isLive && record.Token == mark.Token {
			violation = liveTokenRemoved
		}
	}
	isFreed := old.Condition == Cleaning && old.Tenant != 0 && value.Tenant == 0
	if isFreed && writer != server && old.CleaningToken != state.Processes[writer].Token {
		violation = freedByStranger
	}
	isLeft := value.count() == 0 && value.Origin != Retained
	if old.Kept && value.Exists && (value.Tenant == 0 || value.Condition != old.Condition || isLeft) {
		violation = retainedLeft
	}
	return violation
}

// judgeExhausted checks I6 at the moment a claim reports exhaustion.
func (c *call) judgeExhausted(state *State) *Violation {
	record := &state.Records[c.operation.Record]
	if record.Phase == Bound && state.Touched[record.Member] == Untouched {
		return exhaustedWhenBound
	}
	return nil
}

func (s *Scenario) isUntouched(state *State, member, record uint8) bool {
	return state.Touched[member] == Untouched && !state.RecordsDestroyed[record] && !state.RecordsRestored[record]
}

// judge checks what has to hold in every state.
func (s *Scenario) judge(state *State) *Violation {
	for process := range s.Scripts {
		if !s.holds(state, process) {
			continue
		}
		if violation := s.judgeHeld(state, process); violation != nil {
			return violation
		}
		for other := process + 1; other < len(s.Scripts); other++ {
			if !s.holds(state, other) {
				continue
			}
			if violation := s.judgeBothHeld(state, process, other); violation != nil {
				return violation
			}
		}
	}
	for number := range s.MemberCount {
		if member := &state.Members[number]; member.Exists && member.Condition == Usable && member.Soiled {
			return usableUncleaned
		}
	}
	if s.Spill && state.Records[recordT].Holders&state.Records[recordT2].Holders != noHolder {
		return placeTwice
	}
	if s.Quota > 0 && s.boundByConsumer(state) > s.Quota {
		return quotaExceeded
	}
	return s.judgeLimits(state)
}

// heldClaim gives the operation that returned the claim a process holds, and the member.
func (s *Scenario) heldClaim(state *State, process int) (Operation, uint8) {
	claim := s.Scripts[process][s.heldOperation(state, process)]
	held := *state
	held.Processes[process].Spilled = state.Processes[process].HeldSpilled
	return s.placed(&held, process, claim), state.Processes[process].Held - 1
}

func (s *Scenario) judgeHeld(state *State, process int) *Violation {
	claim, member := s.heldClaim(state, process)
	record := &state.Records[claim.Record]
	switch {
	case !s.isUntouched(state, member, claim.Record):
		return nil
	case !s.carries(&state.Members[member], s.TenantOf[claim.Record], record.Token):
		return heldNotCarried
	case record.Phase != Bound || record.Member != member || !record.Holders.has(claim.Holder):
		return heldRecordChanged
	}
	return nil
}

func (s *Scenario) judgeBothHeld(state *State, process, other int) *Violation {
	claim, member := s.heldClaim(state, process)
	otherClaim, otherMember := s.heldClaim(state, other)
	isSameMember := member == otherMember
	if claim.Record == otherClaim.Record {
		isUntouched := s.isUntouched(state, member, claim.Record) && state.Touched[otherMember] == Untouched
		if !isSameMember && isUntouched {
			return holdersDiffer
		}
		return nil
	}
	switch {
	case s.Displaced != 0 && claim.Record+otherClaim.Record == recordT+s.Displaced-1:
		return slotTwice
	case !isSameMember || s.Shared:
		return nil
	case s.TenantOf[claim.Record] == s.TenantOf[otherClaim.Record]:
		return slotsShare
	case s.EvidenceDestroyed || state.Touched[member] == EvidenceRemoved:
		return nil
	case state.RecordsDestroyed[claim.Record] || state.RecordsDestroyed[otherClaim.Record]:
		return nil
	}
	return tenantsShare
}

func (s *Scenario) judgeLimits(state *State) *Violation {
	if s.Shared {
		for member := range s.MemberCount {
			if state.Members[member].count() > s.Capacity {
				return capacityExceeded
			}
		}
	}
	if s.HolderLimit > 0 {
		for record := range s.RecordCount {
			if state.Records[record].Holders.count() > s.HolderLimit {
				return limitExceeded
			}
		}
	}
	return nil
}

func (s *Scenario) isAtRest(state *State) bool {
	for process := range s.Scripts {
		if !s.isDone(state, process) {
			return false
		}
	}
	return true
}

// judgeAtRest checks I4 of a state in which every script has ended and no write is in flight. hasOrphan: there
// is something only a sweep would remove.
func (s *Scenario) judgeAtRest(state *State) (violation *Violation, hasOrphan bool) {
	for number := range s.RecordCount {
		if phase := state.Records[number].Phase; phase == Pending || phase == Releasing {
			hasOrphan = true
			// A claim that meets a restored one ends where it stands: its next run goes on after the recovery.
			isEndedEarly := state.RecordsRestored != [maxRecords]bool{}
			if !s.Faults.LateWrites && !s.Faults.AbandonedReleases && !isEndedEarly {
				return halfDone, hasOrphan
			}
		}
	}
	if violation := s.judgeReleased(state); violation != nil {
		return violation, hasOrphan
	}
	for number := range uint8(s.MemberCount) {
		violation, isOrphan := s.judgeMemberAtRest(state, number)
		if violation != nil {
			return violation, hasOrphan
		}
		hasOrphan = hasOrphan || isOrphan
	}
	if hasOrphan && s.NoOrphans {
		return orphanLeft, hasOrphan
	}
	return nil, hasOrphan
}

// judgeReleased checks that who released last is no holder any more. A write that comes late may be a claim's.
func (s *Scenario) judgeReleased(state *State) *Violation {
	if s.Faults.LateWrites || s.Faults.AbandonedReleases {
		return nil
	}
	for _, script := range s.Scripts {
		last := script[len(script)-1]
		if last.Kind == Release && state.Records[last.Record].Holders.has(last.Holder) {
			return stillListed
		}
	}
	return nil
}

func (s *Scenario) judgeMemberAtRest(state *State, number uint8) (violation *Violation, isOrphan bool) {
	member, initial := &state.Members[number], &s.Members[number]
	for _, mark := range member.Marks {
		if mark.Token != 0 {
			isBound := s.isLive(state, mark.Token, mark.Record) && state.Records[mark.Record].Phase == Bound
			isOrphan = isOrphan || !isBound
		}
	}
	isTouched := state.Touched[number] != Untouched
	isOwned := member.Tenant != 0 && member.Condition == Usable
	isBrought := initial.Tenant != 0 && initial.Condition == Usable && initial.Origin == NoOrigin
	switch {
	case isBrought && member.Exists && member.Tenant != initial.Tenant && !isTouched:
		return ownLost, isOrphan
	case !isOwned || initial.Tenant != 0 || s.Shared:
		return nil, isOrphan
	case s.Mistake.isLabelOnly():
		return nil, !s.isBoundTo(state, number)
	case member.Marks[0].Token != 0 || isTouched:
		return nil, isOrphan
	case s.Policy != PolicyRetain:
		return ownedNameless, isOrphan
	case member.Origin != Retained:
		return keptForEver, isOrphan
	}
	return nil, isOrphan
}

func (s *Scenario) isBoundTo(state *State, member uint8) bool {
	for number := range s.RecordCount {
		if record := &state.Records[number]; record.Phase == Bound && record.Member == member {
			return true
		}
	}
	return false
}
