package main

// standing is what a listed member is to the claim that listed it.
type standing uint8

const (
	unusable standing = iota
	marked            // the tenant's, with a token that is dead, ours or another claim's
	ownUnused
	free
)

func (c *call) standingOf(number uint8) standing {
	member, self, tenant := &c.before.Members[number], c.self(), c.tenant()
	isSkipped := self.Skipped.has(number)
	if !member.Exists || member.Condition != Usable {
		return unusable
	}
	if c.Shared {
		switch {
		case !isSkipped && member.markOf(self.Record) != nil:
			return marked
		case member.count() < c.Capacity:
			return free
		}
		return unusable
	}
	isMarked := member.Marks[0].Token != 0 && !c.Mistake.isLabelOnly() && !(c.Mistake == W13 && member.Tenant == 0)
	switch {
	case isMarked && member.Tenant == tenant && !isSkipped:
		return marked
	case isMarked:
		return unusable
	case member.Tenant == tenant:
		return ownUnused
	case member.Tenant == 0:
		return free
	}
	return unusable
}

func (c *call) membersThatAre(wanted standing) MemberSet {
	var found MemberSet
	for number := range uint8(c.MemberCount) {
		if c.standingOf(number) == wanted {
			found = found.with(number)
		}
	}
	return found
}

// findStep is the first list of a find.
func (s *Scenario) findStep() Step {
	if s.ListsSideBySide {
		return ListBothMembers
	}
	return ListOwnMembers
}

// C1, C6, find (a): LIST the tenant's own members; shared ones have one list for all.
func (c *call) listOwnMembers() {
	switch {
	case c.usesOwn():
	case c.Shared:
		c.chooseFree()
	default:
		c.goOn("(no usable own member)", ListFreeMembers)
	}
}

// usesOwn goes on with a member the tenant has already, if there is one.
func (c *call) usesOwn() bool {
	if found := c.membersThatAre(marked); found != 0 {
		c.examine(found)
		return true
	}
	found := c.membersThatAre(ownUnused)
	c.choose(found)
	return found != 0
}

// C1, C6, find (b): LIST the free members.
func (c *call) listFreeMembers() { c.chooseFree() }

// C1, C6: both lists at once. The server answers them in either order, and others run in between. They may
// find a member, but only find (a) and then (b) may find none.
func (c *call) listBothMembers() {
	if !c.usesOwn() {
		c.goOn("(own first: none)", ListFreeAfterOwn)
	}
	found := c.membersThatAre(free)
	if found == 0 {
		c.goOn("(free first: none)", ListOwnMembers)
	}
	for number := range uint8(c.MemberCount) {
		if found.has(number) {
			c.read("(free first: kept in mind)", func(_ *State, self *Process) *Violation {
				self.Member, self.MemberFresh, self.Step = number, true, ListOwnAfterFree
				return nil
			})
		}
	}
}

// C1, C6: the second answer, after the tenant's own were none.
func (c *call) listFreeAfterOwn() {
	found := c.membersThatAre(free)
	if found == 0 {
		c.goOn("(none)", ListOwnMembers)
	}
	c.choose(found)
}

// C1, C6: the second answer, after a free member was found.
func (c *call) listOwnAfterFree() {
	if c.usesOwn() {
		return
	}
	c.read("(none, so the free one)", func(_ *State, self *Process) *Violation {
		c.accept(self)
		return nil
	})
}

func (c *call) goOn(outcome string, step Step) {
	c.read(outcome, func(_ *State, self *Process) *Violation {
		self.Step = step
		return nil
	})
}

// examine goes on to look behind the token of any of the members.
func (c *call) examine(found MemberSet) {
	for number := range uint8(c.MemberCount) {
		if !found.has(number) {
			continue
		}
		c.read("(own member with a token)", func(next *State, self *Process) *Violation {
			mark := &next.Members[number].Marks[0]
			if c.Shared {
				mark = next.Members[number].markOf(self.Record)
			}
			self.Member, self.MemberFresh, self.Step = number, true, GetRecordOfListedToken
			self.OtherToken, self.OtherRecord = mark.Token, mark.Record
			return nil
		})
	}
}

func (c *call) chooseFree() {
	found := c.membersThatAre(free)
	if c.Shared {
		found = c.leastUsed(found)
	}
	if found == 0 {
		c.findNothing()
		return
	}
	c.choose(found)
}

func (c *call) leastUsed(members MemberSet) MemberSet {
	least, fewest := MemberSet(0), maxTokens+1
	for number := range uint8(c.MemberCount) {
		if !members.has(number) {
			continue
		}
		switch count := c.before.Members[number].count(); {
		case count < fewest:
			least, fewest = MemberSet(0).with(number), count
		case count == fewest:
			least = least.with(number)
		}
	}
	return least
}

// choose takes any of the members as the candidate, which covers every order of preference.
func (c *call) choose(candidates MemberSet) {
	for number := range uint8(c.MemberCount) {
		if !candidates.has(number) {
			continue
		}
		c.read("(candidate chosen)", func(_ *State, self *Process) *Violation {
			self.Member, self.MemberFresh = number, true
			c.accept(self)
			return nil
		})
	}
}

// accept goes on with the candidate this process has in mind.
func (c *call) accept(self *Process) {
	isNamed := self.Unavailable == self.Member+1
	self.OtherToken, self.OtherRecord, self.Skipped, self.Unavailable = 0, 0, 0, 0
	switch {
	case self.Moving && isNamed && c.Mistake != W18:
		self.Step, self.Moving = TakeMember, false // usable again: no move
	case self.Moving:
		self.Step = MoveRecord
	default:
		c.enter(self, CreateRecord)
	}
}

func (c *call) findNothing() {
	c.read("(nothing available)", func(next *State, self *Process) *Violation {
		for number := range c.MemberCount {
			member := &next.Members[number]
			if c.canTake(member, c.tenant()) && (c.Shared || member.Tenant == 0) {
				return exhaustedWithFree
			}
		}
		self.Member, self.MemberFresh = 0, false
		self.OtherToken, self.OtherRecord, self.Skipped = 0, 0, 0
		switch {
		case self.Moving:
			self.Step, self.Unavailable = DeletePendingRecord, 0
		case c.Mistake == W15:
			c.finish(next, c.process)
			return c.judgeExhausted(next)
		default:
			self.Step, self.Token = GetRecordBeforeExhausted, 0
		}
		return nil
	})
}

// C1, C6, find (a): GET the record a listed token names, after the list.
func (c *call) getRecordOfListedToken() {
	c.judgeToken(RemoveListedToken, func(self *Process) {
		self.Skipped = self.Skipped.with(self.Member)
		self.Member, self.MemberFresh, self.Step = 0, false, c.findStep()
	})
}

// C1, C6, find (a): CAS M: remove the dead token, then look for a member again.
func (c *call) removeListedToken() {
	c.removeOtherToken(func(_ *State, self *Process) {
		self.OtherToken, self.OtherRecord = 0, 0
		self.Member, self.MemberFresh, self.Step = 0, false, c.findStep()
	})
}

// judgeToken decides by the record a token names whether it is dead, of this very claim, or of another.
func (c *call) judgeToken(ifDead Step, ifOthers func(self *Process)) {
	c.read("", func(next *State, self *Process) *Violation {
		isDead := !c.isLive(next, self.OtherToken, self.OtherRecord)
		if c.Mistake == W8 && self.OtherRecord == self.Record {
			isDead = self.OtherToken != self.Token // by the record that was read before the member
		}
		isRestored := c.isRestored(next, self.Member, Mark{self.OtherToken, self.OtherRecord})
		switch {
		case isRestored && c.Mistake != W25:
			c.finish(next, c.process) // Restored
		case isDead:
			self.Step = ifDead
		case self.OtherRecord == self.Record:
			c.restart(next, c.process)
		default:
			ifOthers(self)
			self.OtherToken, self.OtherRecord = 0, 0
		}
		return nil
	})
}

// removeOtherToken removes a dead token with the resourceVersion of the read that showed it.
func (c *call) removeOtherToken(then continuation) {
	c.casMember(func(next *State, self *Process) Member {
		return c.removed(next.Members[self.Member], c.TenantOf[self.OtherRecord], self.OtherToken, c.Policy, false)
	}, then, then)
}
