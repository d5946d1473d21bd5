package main

// canTake tells whether a member is free, or the tenant's own and unused.
func (s *Scenario) canTake(member *Member, tenant Tenant) bool {
	switch {
	case !member.Exists || member.Condition != Usable:
		return false
	case s.Shared:
		return member.count() < s.Capacity
	case s.Mistake.isLabelOnly():
		return member.Tenant == 0
	case s.Mistake == W13 && member.Tenant == 0:
		return true
	}
	return member.Marks[0].Token == 0 && (member.Tenant == 0 || member.Tenant == tenant)
}

// carries tells whether a member is the one of this claim.
func (s *Scenario) carries(member *Member, tenant Tenant, token Token) bool {
	switch {
	case !member.Exists:
		return false
	case s.Mistake.isLabelOnly():
		return member.Tenant == tenant
	case s.Shared:
		return member.bears(token)
	}
	return member.Tenant == tenant && member.bears(token)
}

// taken is the member after C3.
func (s *Scenario) taken(member Member, tenant Tenant, token Token, record uint8) Member {
	if s.Shared {
		member.add(token, record)
		return member
	}
	switch {
	case member.Tenant == tenant && member.Origin == Retained && s.Mistake != W35:
		// It stays its tenant's until this claim is bound.
	case member.Tenant == tenant && member.Origin != FromPool && member.Origin != Retained:
		member.Origin = FromOwner
	default:
		member.Origin = FromPool
	}
	member.Tenant = tenant
	if s.Mistake.isLabelOnly() {
		return member
	}
	if s.Mistake == W13 {
		member.Marks = [maxTokens]Mark{}
	}
	member.add(token, record)
	return member
}

// removed is the member after remove(token) with this policy. wasBound: the tenant had it by this claim.
func (s *Scenario) removed(member Member, tenant Tenant, token Token, policy Policy, wasBound bool) Member {
	origin := member.Origin
	member.drop(token)
	if s.Shared {
		return member
	}
	member.Origin = NoOrigin
	if member.Tenant == 0 && !s.Mistake.isLabelOnly() { // stripped by hand: the label counts as there
		member.Tenant = tenant
	}
	isRelabelled := member.Tenant != tenant
	isOwners := origin == FromOwner && s.Mistake != W6 && !s.Mistake.isLabelOnly()
	if isRelabelled || isOwners {
		return member
	}
	if origin == Retained && !wasBound && s.Mistake != W36 {
		member.Origin = Retained // the claim never came about, so its policy decides nothing
		return member
	}
	switch policy {
	case PolicyRelease:
		member.Tenant = 0
	case PolicyRetain:
		if s.Mistake != W29 {
			member.Origin = Retained // its next claim is of a pool member again, and an operator may return it
			member.Kept = member.Condition == Usable
		}
	case PolicyQuarantine:
		member.Condition, member.Soiled = Quarantined, true
		member.Origin = FromPool
	case PolicyClean:
		member.Soiled = true
		if member.Condition != Quarantined { // what an operator took out of the pool stays out
			member.Condition = Dirty
		}
		member.Origin = FromPool // tells the cleaner that the owner may be removed
	}
	return member
}
