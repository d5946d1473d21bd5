package main

// Opening a pool, once in the life of a process: GET its settings.
func (c *call) getSettings() {
	c.read("", func(next *State, self *Process) *Violation {
		self.Keys = DeclaredKeys
		if next.SettingsLost {
			self.Keys = OtherKeys
		}
		c.restart(next, c.process)
		return nil
	})
}

// C0: LIST the records of a slot that spills: where this holder is, else the fullest below its limit, else the
// first that is not there.
func (c *call) listSeries() {
	c.read("", func(next *State, self *Process) *Violation {
		record, isOne := c.placeInSeries(next)
		if !isOne {
			c.finish(next, c.process) // LimitReached: the series of the model has two records
			return nil
		}
		self.Spilled, self.Record, self.Step = record == recordT2, record, GetRecordToClaim
		return nil
	})
}

func (c *call) placeInSeries(state *State) (uint8, bool) {
	series := [...]uint8{recordT, recordT2}
	fullest, absent := -1, -1
	for i, number := range series {
		record := state.Records[number]
		switch {
		case record.Holders.has(c.operation.Holder) && c.Mistake != W30:
			return number, true
		case record.Phase == Absent && absent < 0:
			absent = i
		case record.Phase != Absent && !c.isFull(record):
			if fullest < 0 || record.Holders.count() > state.Records[series[fullest]].Holders.count() {
				fullest = i
			}
		}
	}
	for _, i := range []int{fullest, absent} {
		if i >= 0 {
			return series[i], true
		}
	}
	return 0, false
}

// refuse ends a claim that found its limit reached; one that spills looks for a place again.
func (c *call) refuse(next *State, _ *Process) {
	if c.spills(next, c.process) {
		c.begin(next, c.process)
		return
	}
	c.finish(next, c.process)
}

// C0: GET R.
func (c *call) getRecordToClaim() {
	c.read("", func(next *State, self *Process) *Violation {
		record := next.Records[self.Record]
		if record.Phase == Absent {
			self.Step = c.findStep()
			if self.Keys != Unopened && !self.MayBegin && c.Mistake != W22 {
				self.Step = ListAnyRecord
			}
			return nil
		}
		self.Member, self.Token, self.RecordFresh = record.Member, record.Token, true
		switch record.Phase {
		case Pending:
			c.enter(self, GetMember)
		case Bound:
			self.HolderListed = record.Holders.has(c.operation.Holder)
			if self.HolderListed {
				self.Step = GetBoundMember
			} else {
				c.enter(self, GetBoundMember)
			}
		case Releasing:
			self.Step = GetReleasingMember
		}
		return nil
	})
}

// C1: LIST until there is one record, whichever: one made under other keys than this process knows ends the claim.
func (c *call) listAnyRecord() {
	isAny := false
	for number := range uint8(c.RecordCount) {
		if c.before.Records[number].Phase == Absent {
			continue
		}
		isAny = true
		if keys := c.keysOf(number); keys != c.self().Keys {
			c.read("(made under other keys)", func(next *State, _ *Process) *Violation {
				c.finish(next, c.process)
				return nil
			})
			continue
		}
		c.goOnToFind("(made under these keys)")
	}
	if !isAny {
		c.goOnToFind("(none)")
	}
}

func (c *call) goOnToFind(outcome string) {
	c.read(outcome, func(_ *State, self *Process) *Violation {
		self.MayBegin, self.Step = true, c.findStep()
		return nil
	})
}

// C1: GET R once more, because only its absence makes an empty list mean exhaustion.
func (c *call) getRecordBeforeExhausted() {
	c.read("", func(next *State, self *Process) *Violation {
		if next.Records[self.Record].Phase != Absent {
			c.restart(next, c.process)
			return nil
		}
		c.finish(next, c.process)
		return c.judgeExhausted(next)
	})
}

// C2: CREATE R. Its fixed name is where two first claims of one tenant collide.
func (c *call) createRecord() {
	isAbsent := c.before.Records[c.self().Record].Phase == Absent
	overtaken := everyone // the uid is new: numbers of an earlier record say nothing
	if c.Mistake == W21 {
		overtaken = noHolder
	}
	c.write(RecordCreate, overtaken, isAbsent, func(next *State, self *Process) *Violation {
		self.Token = c.newToken(next)
		record := Record{Phase: Pending, Member: self.Member, Token: self.Token, Holders: c.operation.Holder}
		c.writeRecord(next, self.Record, record, overtaken, c.process)
		self.RecordGone = false
		return nil
	}, func(_ *State, self *Process) {
		self.Step = TakeMember
		if c.isCounted() && c.Mistake != W32 {
			self.Step, self.Then = EnterQuota, TakeMember
		}
	}, c.again)
}

// C3: CAS M with the resourceVersion at which it was free or the tenant's own.
func (c *call) takeMember() {
	c.casMember(func(next *State, self *Process) Member {
		return c.taken(next.Members[self.Member], c.tenant(), self.Token, self.Record)
	}, func(_ *State, self *Process) {
		self.Step, self.LabelledHere = BindRecord, true
	}, func(_ *State, self *Process) {
		self.Step, self.MemberFresh = GetMember, false
	})
}

// C4: GET M, which a Pending record names, and decide from what is there.
func (c *call) getMember() {
	c.read("", func(next *State, self *Process) *Violation {
		member, tenant := &next.Members[self.Member], c.tenant()
		hasTokens := !c.Shared && !c.Mistake.isLabelOnly() && member.Exists && member.Condition == Usable
		self.LabelledHere = false
		switch {
		case c.carries(member, tenant, self.Token) && member.Condition == Usable:
			self.MemberFresh, self.Step = true, BindRecord
		case c.canTake(member, tenant):
			self.MemberFresh, self.Step = true, TakeMember
		case hasTokens && member.Tenant == 0 && member.bears(self.Token) && c.Mistake != W17:
			self.MemberFresh, self.Step = true, HealMember
		case hasTokens && member.Marks[0].Token != 0 && (member.Tenant == tenant || member.Tenant == 0):
			self.MemberFresh, self.Step = true, GetRecordOfSeenToken
			self.OtherToken, self.OtherRecord = member.Marks[0].Token, member.Marks[0].Record
		default:
			c.leaveMember(self)
			self.Skipped = 0
		}
		return nil
	})
}

// leaveMember goes on to C6: the member the record names is not to be had.
func (c *call) leaveMember(self *Process) {
	self.Moving = true
	self.Unavailable = self.Member + 1
	self.Member, self.MemberFresh, self.Step = 0, false, c.findStep()
}

// C4: GET the record another token names, after the member was read.
func (c *call) getRecordOfSeenToken() {
	c.judgeToken(RemoveSeenToken, func(self *Process) {
		self.Skipped = MemberSet(0).with(self.Member)
		c.leaveMember(self)
	})
}

// C4: CAS M: remove the dead token, then look again.
func (c *call) removeSeenToken() {
	c.removeOtherToken(func(_ *State, self *Process) {
		self.OtherToken, self.OtherRecord = 0, 0
		self.Step, self.MemberFresh = GetMember, false
	})
}

// C4, C8: CAS M: put back the label somebody removed by hand while the token stayed.
func (c *call) healMember() {
	c.casMember(func(next *State, self *Process) Member {
		member := next.Members[self.Member]
		member.Tenant = c.tenant()
		return member
	}, c.again, c.again)
}

// C5: CAS R: the member was taken for good.
func (c *call) bindRecord() {
	record := c.before.Records[c.self().Record]
	bound := record
	bound.Holders = c.keptAtBinding(record.Holders)
	joins := !bound.Holders.has(c.operation.Holder) && !c.isFull(bound)
	bound.Phase, bound.WasBound = Bound, true
	raises := noHolder
	if joins {
		bound.Holders = bound.Holders.with(c.operation.Holder)
		raises = c.operation.Holder
	}
	c.casRecord(raises, func(*State, *Process) Record { return bound }, func(next *State, self *Process) {
		if !bound.Holders.has(c.operation.Holder) {
			c.refuse(next, self) // bound for the others; LimitReached for this holder
			return
		}
		c.returnClaim(next, self)
	}, func(next *State, self *Process) {
		self.Step, self.RecordFresh = GetRecordAfterConflict, false
		if c.Mistake == W1 && self.LabelledHere {
			self.Step = GiveMemberBack
		} else if c.Mistake == W1 {
			c.restart(next, c.process)
		}
	})
}

// C6: CAS R: name another member; the new attempt makes the old token dead.
func (c *call) moveRecord() {
	c.casRecord(noHolder, func(next *State, self *Process) Record {
		record := next.Records[self.Record]
		self.Token = c.newToken(next)
		record.Member, record.Token = self.Member, self.Token
		return record
	}, func(_ *State, self *Process) {
		self.Step, self.Moving, self.Skipped = TakeMember, false, 0
	}, c.again)
}

// C6: DELETE R, for nothing is free: Exhausted.
func (c *call) deletePendingRecord() {
	c.casRecord(noHolder, deleted, c.end, c.again)
}

// C7: GET R after the CAS to Bound failed: somebody helped, or our token is dead.
func (c *call) getRecordAfterConflict() {
	c.read("", func(next *State, self *Process) *Violation {
		record := next.Records[self.Record]
		isOurs := record.Token == self.Token
		if c.Mistake.isLabelOnly() {
			isOurs = record.Member == self.Member
		}
		self.RecordFresh = record.Phase != Absent && isOurs
		switch {
		case !self.RecordFresh && c.Mistake.isLabelOnly() && !self.LabelledHere:
			c.restart(next, c.process)
		case !self.RecordFresh && record.Phase != Absent && c.Mistake != W26 &&
			c.isRestored(next, self.Member, Mark{self.Token, self.Record}):
			c.restart(next, c.process)
		case !self.RecordFresh:
			self.Step = GiveMemberBack
		case record.Phase == Bound:
			self.Step = GetBoundMember
			self.HolderListed = record.Holders.has(c.operation.Holder)
		case record.Phase == Pending:
			self.Step = BindRecord
		case record.Phase == Releasing:
			self.Step = GetReleasingMember
		}
		return nil
	})
}

// C7: CAS M: remove our dead token. The member was never handed out; it is free if the policy would free it, else
// dirty, since from the member alone nobody can tell.
func (c *call) giveMemberBack() {
	policy := PolicyClean
	if c.Policy == PolicyRelease {
		policy = PolicyRelease
	}
	c.casMember(func(next *State, self *Process) Member {
		return c.removed(next.Members[self.Member], c.tenant(), self.Token, policy, false)
	}, c.again, func(next *State, self *Process) {
		self.Step, self.MemberFresh = GetMemberToGiveBack, false
		if c.Mistake.isLabelOnly() {
			c.restart(next, c.process)
		}
	})
}

// C7: GET M, while it still shows our token.
func (c *call) getMemberToGiveBack() {
	c.read("", func(next *State, self *Process) *Violation {
		if next.Members[self.Member].bears(self.Token) {
			self.MemberFresh, self.Step = true, GiveMemberBack
		} else {
			c.restart(next, c.process)
		}
		return nil
	})
}

// C8: GET M of a Bound record.
func (c *call) getBoundMember() {
	c.read("", func(next *State, self *Process) *Violation {
		member := &next.Members[self.Member]
		switch {
		case !c.carries(member, c.tenant(), self.Token):
			self.MemberFresh, self.Step = true, GetBoundRecordAgain
		case self.HolderListed && !c.fencesReclaims():
			c.returnClaim(next, self)
		case !self.HolderListed && member.Condition != Usable:
			c.finish(next, c.process) // NotAllowed: no new holders
		default:
			self.Step, self.MemberFresh = JoinRecord, false
		}
		return nil
	})
}

// C8: GET R again: only an unchanged record makes a member that does not carry it a loss.
func (c *call) getBoundRecordAgain() {
	c.read("", func(next *State, self *Process) *Violation {
		if !self.RecordFresh {
			c.restart(next, c.process)
			return nil
		}
		var violation *Violation
		if c.isUntouched(next, self.Member, self.Record) {
			violation = boundButNotCarried
		}
		member := &next.Members[self.Member]
		switch {
		case !self.MemberFresh:
			self.Step = GetBoundMember
		case !c.Shared && member.Exists && member.Tenant == 0 && member.bears(self.Token):
			self.Step = HealMember
		default:
			c.finish(next, c.process) // LostMember
		}
		return violation
	})
}

// C8: CAS R: one more holder, or a known one with a raised sequence number.
func (c *call) joinRecord() {
	record := c.before.Records[c.self().Record]
	holder := c.operation.Holder
	if c.self().RecordFresh && !record.Holders.has(holder) && c.isFull(record) {
		c.read("(limit reached)", func(next *State, self *Process) *Violation {
			c.refuse(next, self)
			return nil
		})
		return
	}
	raises := holder
	if c.Mistake == W20 && !record.Holders.has(holder) {
		raises = noHolder
	}
	c.casRecord(raises, func(next *State, self *Process) Record {
		joined := next.Records[self.Record]
		joined.Holders = joined.Holders.with(holder)
		return joined
	}, c.returnClaim, c.again)
}

// returnClaim hands the member to the caller of the claim.
func (c *call) returnClaim(next *State, self *Process) {
	self.Held, self.HeldSpilled = self.Member+1, self.Spilled
	c.remember(self)
	c.finish(next, c.process)
}

func (c *call) isFull(record Record) bool {
	return c.HolderLimit > 0 && record.Holders.count() >= c.HolderLimit
}

// fencesReclaims tells whether a repeated claim of a known holder writes.
func (c *call) fencesReclaims() bool { return !c.UnfencedReclaims && c.Mistake != W16 }

func deleted(*State, *Process) Record { return Record{} }
