package main

// K1: LIST members, and take any this cleaner may clean.
func (c *call) listMembersToClean() {
	isAny := false
	for number := range uint8(c.MemberCount) {
		if !c.isCleanable(&c.before.Members[number]) {
			continue
		}
		isAny = true
		c.read("", func(next *State, self *Process) *Violation {
			self.Member, self.MemberFresh, self.Step = number, true, ListRecordsToClean
			return nil
		})
	}
	if !isAny {
		c.nothingToDo("(nothing dirty)")
	}
}

// K1: LIST records, and leave what a claim is on that nobody released: its tenant may have it, though its token is gone.
func (c *call) listRecordsToClean() {
	c.read("", func(next *State, self *Process) *Violation {
		for number := range c.RecordCount {
			record := &next.Records[number]
			isStanding := record.Phase == Bound || record.Phase == Pending
			if isStanding && record.Member == self.Member && c.Mistake != W31 && c.Mistake != W12 {
				c.finish(next, c.process)
				return nil
			}
		}
		self.Token, self.Step = c.newToken(next), TakeForCleaning
		return nil
	})
}

// isCleanable: dirty members nobody claims, and what an earlier run of this cleaner left.
func (c *call) isCleanable(member *Member) bool {
	switch member.Condition {
	case Dirty:
		return member.Marks[0].Token == 0 || c.Mistake == W12
	case Cleaning:
		return int(member.Cleaner) == c.process+1 || c.TakeOver
	}
	return false
}

// K2: CAS M to cleaning, with a token new in each run.
func (c *call) takeForCleaning() {
	c.casMember(func(next *State, self *Process) Member {
		member := next.Members[self.Member]
		member.Condition, member.CleaningToken, member.Cleaner = Cleaning, self.Token, uint8(c.process+1)
		return member
	}, func(_ *State, self *Process) {
		self.Step = WipeAccount
	}, func(_ *State, self *Process) {
		self.Step, self.MemberFresh = GetTakenForCleaning, false
	})
}

// K2: GET M after an unknown outcome: it is ours only with our token.
func (c *call) getTakenForCleaning() { c.goOnIfOurs(WipeAccount) }

// K3: wipe the account. Nothing in Kubernetes stops a cleaner whose work was taken over; a rotated credential does.
func (c *call) wipeAccount() {
	c.read("", func(next *State, self *Process) *Violation {
		member := &next.Members[self.Member]
		self.Step = FreeCleaned
		if isCleanedBy(member, self) {
			member.Soiled = false
		}
		isRotated := c.TakeOver && c.Mistake != W11
		isClaimed := member.Tenant != 0 && (member.Condition == Usable || member.Marks[0].Token != 0)
		if isClaimed && (!isRotated || isCleanedBy(member, self)) {
			return wipedClaimed
		}
		return nil
	})
	if c.Faults.FailedWipes {
		c.goOn("(failed)", QuarantineUncleaned)
	}
}

// K3: CAS M to quarantined, when wiping failed.
func (c *call) quarantineUncleaned() {
	c.casMember(func(next *State, self *Process) Member {
		member := next.Members[self.Member]
		return c.quarantined(member)
	}, c.end, func(_ *State, self *Process) {
		self.Step, self.MemberFresh = GetUncleaned, false
	})
}

// quarantined is a member kept from new holders: it remembers that it was dirty, and that it was given up.
func (s *Scenario) quarantined(member Member) Member {
	if member.Condition != Usable && member.Condition != Quarantined && s.Mistake != W27 {
		member.Before = WasDirty
	}
	member.Condition, member.CleaningToken, member.Cleaner = Quarantined, 0, 0
	return member
}

// K3: GET M after a conflict: once more while it is ours, else hands off.
func (c *call) getUncleaned() { c.goOnIfOurs(QuarantineUncleaned) }

// K4: CAS M to usable, with the resourceVersion of K2.
func (c *call) freeCleaned() {
	if c.Mistake == W10 {
		c.freeAfterReading()
		return
	}
	c.casMember(func(next *State, self *Process) Member {
		member := next.Members[self.Member]
		if member.Origin == FromPool || c.Mistake == W4 {
			member.Tenant = 0
		}
		if member.Origin != Retained {
			member.Origin = NoOrigin
		}
		member.Condition, member.Before = Usable, WasUsable
		member.CleaningToken, member.Cleaner = 0, 0
		return member
	}, c.end, func(_ *State, self *Process) {
		self.Step, self.MemberFresh = GetFreed, false
	})
}

// K4: GET M after a conflict: once more while it is ours, else hands off.
func (c *call) getFreed() { c.goOnIfOurs(FreeCleaned) }

func (c *call) goOnIfOurs(step Step) {
	c.read("", func(next *State, self *Process) *Violation {
		if isCleanedBy(&next.Members[self.Member], self) {
			self.MemberFresh, self.Step = true, step
		} else {
			c.finish(next, c.process)
		}
		return nil
	})
}

func isCleanedBy(member *Member, cleaner *Process) bool {
	return member.Condition == Cleaning && member.CleaningToken == cleaner.Token
}

// W10: read M, then free it with the resourceVersion just read.
func (c *call) freeAfterReading() {
	c.read("(read again, then CAS with that resourceVersion)", func(next *State, self *Process) *Violation {
		member := next.Members[self.Member]
		var violation *Violation
		if member.Tenant != 0 && member.Condition == Usable {
			violation = freedClaimed
		}
		if member.Exists {
			c.storeMember(next, self.Member, Member{Exists: true, Origin: member.Origin}, c.process)
		}
		c.finish(next, c.process)
		return violation
	})
}
