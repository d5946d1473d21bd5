package main

// S1: LIST members, and take any token found to be judged.
func (c *call) listMembersToSweep() {
	isAny := false
	for number := range uint8(c.MemberCount) {
		for _, mark := range c.marksToSweep(number) {
			isAny = true
			c.read("", func(_ *State, self *Process) *Violation {
				self.Member, self.MemberFresh, self.Step = number, true, GetRecordToSweep
				self.OtherToken, self.OtherRecord = mark.Token, mark.Record
				return nil
			})
		}
	}
	if !isAny {
		c.nothingToDo("(no token)")
	}
}

func (c *call) marksToSweep(number uint8) []Mark {
	member := &c.before.Members[number]
	if !c.Mistake.isLabelOnly() {
		return member.Marks[:member.count()]
	}
	if member.Tenant != 0 && member.Condition == Usable {
		return []Mark{{}}
	}
	return nil
}

// S2: then look at the record the token names.
func (c *call) getRecordToSweep() {
	c.read("", func(next *State, self *Process) *Violation {
		isDead := !c.isLive(next, self.OtherToken, self.OtherRecord)
		if c.Mistake.isLabelOnly() {
			isDead = !c.isNamed(next, self.Member)
		}
		isRestored := c.isRestored(next, self.Member, Mark{self.OtherToken, self.OtherRecord})
		if isDead && (!isRestored || c.Mistake == W24) {
			self.Step = RemoveSweptToken
		} else {
			c.finish(next, c.process)
		}
		return nil
	})
}

// S2: CAS M: remove the dead token with the resourceVersion of the list; a conflict is ignored.
func (c *call) removeSweptToken() {
	c.casMember(func(next *State, self *Process) Member {
		member, tenant := next.Members[self.Member], c.TenantOf[self.OtherRecord]
		if c.Mistake.isLabelOnly() {
			tenant = member.Tenant
		}
		return c.removed(member, tenant, self.OtherToken, c.Policy, false)
	}, c.end, c.end)
}

// S3: LIST records, and take any that is half done.
func (c *call) listRecordsToSweep() {
	isAny := false
	for number := range uint8(c.RecordCount) {
		record := c.before.Records[number]
		if record.Phase != Pending && record.Phase != Releasing {
			continue
		}
		isAny = true
		c.read("", func(_ *State, self *Process) *Violation {
			self.Record, self.RecordFresh = number, true
			self.Member, self.Token = record.Member, record.Token
			self.Step = AbortPendingRecord
			if record.Phase == Releasing {
				self.Step = GetReleasingMember
			}
			return nil
		})
	}
	if !isAny {
		c.nothingToDo("(nothing half done)")
	}
}

// S3: CAS R: a record left Pending is released; its claimers simply start again.
func (c *call) abortPendingRecord() {
	c.casRecord(noHolder, releasing, finishReleasing, c.end)
}

func (c *call) nothingToDo(why string) {
	c.read(why, func(next *State, _ *Process) *Violation {
		c.finish(next, c.process)
		return nil
	})
}

func (c *call) isNamed(state *State, member uint8) bool {
	for number := range c.RecordCount {
		if record := &state.Records[number]; record.Phase != Absent && record.Member == member {
			return true
		}
	}
	return false
}

// W7, the wrong order: LIST records before members.
func (c *call) listRecordsBeforeMembers() {
	for number := range uint8(c.MemberCount) {
		c.read("(which name this member)", func(next *State, self *Process) *Violation {
			self.Member, self.MemberFresh = number, false
			self.SeenNamed = c.isNamed(next, number)
			self.Step = ListMembersAfterRecords
			return nil
		})
	}
}

// W7: LIST members, and judge a token by the records listed before.
func (c *call) listMembersAfterRecords() {
	c.read("", func(next *State, self *Process) *Violation {
		member := &next.Members[self.Member]
		if self.SeenNamed || member.Marks[0].Token == 0 || member.Tenant == 0 || member.Condition != Usable {
			c.finish(next, c.process)
			return nil
		}
		self.MemberFresh, self.Step = true, RemoveSweptToken
		self.OtherToken, self.OtherRecord = member.Marks[0].Token, member.Marks[0].Record
		return nil
	})
}
