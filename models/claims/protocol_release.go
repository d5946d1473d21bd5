package main

// R0: GET R. The claim stops being held with this call.
func (c *call) getRecordToRelease() {
	c.read("", func(next *State, self *Process) *Violation {
		if c.isLastClaim(self) {
			self.Held = 0
		}
		record := next.Records[self.Record]
		switch {
		case record.Phase == Releasing:
			self.Member, self.Token, self.RecordFresh = record.Member, record.Token, true
			self.Step = GetReleasingMember
		case record.Phase == Absent || !record.Holders.has(c.operation.Holder) || c.isOvertaken(self):
			c.finish(next, c.process)
		case !record.Holders.only(c.operation.Holder):
			self.RecordFresh, self.Step = true, LeaveRecord
		default:
			self.Member, self.Token, self.RecordFresh = record.Member, record.Token, true
			self.Step = StartReleasing
		}
		return nil
	})
}

// R1: CAS R: one holder less.
func (c *call) leaveRecord() {
	c.casRecord(noHolder, func(next *State, self *Process) Record {
		record := next.Records[self.Record]
		record.Holders = record.Holders.minus(c.operation.Holder)
		return record
	}, c.end, c.again)
}

// R2: CAS R to Releasing: the last holder leaves.
func (c *call) startReleasing() {
	c.casRecord(noHolder, releasing, finishReleasing, c.again)
}

func releasing(next *State, self *Process) Record {
	record := next.Records[self.Record]
	record.Phase, record.Holders = Releasing, noHolder
	return record
}

func finishReleasing(_ *State, self *Process) { self.Step = GetReleasingMember }

// X1: GET M, by whoever meets a Releasing record.
func (c *call) getReleasingMember() {
	c.read("", func(next *State, self *Process) *Violation {
		member := &next.Members[self.Member]
		isOurs := member.bears(self.Token)
		if c.Mistake.isLabelOnly() {
			isOurs = member.Exists && member.Tenant == c.tenant()
		}
		if isOurs {
			self.MemberFresh, self.Step = true, ReleaseMember
		} else {
			self.MemberFresh, self.Step = false, DeleteReleasingRecord
		}
		return nil
	})
}

// X2: CAS M: remove the token and apply the record's policy.
func (c *call) releaseMember() {
	c.casMember(func(next *State, self *Process) Member {
		wasBound := c.isLive(next, self.Token, self.Record) && next.Records[self.Record].WasBound
		return c.removed(next.Members[self.Member], c.tenant(), self.Token, c.Policy, wasBound)
	}, func(_ *State, self *Process) {
		self.Step, self.MemberFresh = DeleteReleasingRecord, false
	}, func(_ *State, self *Process) {
		self.Step, self.MemberFresh = GetReleasingMember, false
	})
}

// X3: DELETE R. A conflict says that somebody else finished it.
func (c *call) deleteReleasingRecord() {
	done, conflict := c.end, c.again
	switch c.operation.Kind {
	case Claim:
		done = c.again
	case SweepRecords:
		conflict = c.end
	}
	c.casRecord(noHolder, deleted, done, conflict)
}
