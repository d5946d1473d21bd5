package main

import "math/bits"

// Quota is what the ConfigMap of a consumer's quota lists: records by name and uid.
type Quota struct {
	Listed RecordSet // records that are there as they were listed
	Gone   uint8     // entries whose record is gone for ever
}

// RecordSet is a set of record numbers.
type RecordSet = MemberSet

func (quota Quota) count() int { return bits.OnesCount8(uint8(quota.Listed)) + int(quota.Gone) }

// isCounted tells whether the holder of this operation is of the consumer that has a quota.
func (c *call) isCounted() bool { return c.operation.Holder&c.Counted != noHolder }

// enter goes on by way of the quota, if there is one for this holder.
func (c *call) enter(self *Process, then Step) {
	if !c.isCounted() {
		self.Step = then
		return
	}
	self.Step, self.Then = GetQuota, then
}

// Q1: GET the quota; with room, or with this very claim in it already, go on.
func (c *call) getQuota() {
	c.read("", func(next *State, self *Process) *Violation {
		self.QuotaFresh, self.Pruned = true, 0
		switch {
		case c.Mistake == W32:
			self.Step = self.Then
			if c.boundByConsumer(next) >= c.Quota {
				c.finish(next, c.process)
			}
		case !self.RecordGone && self.Then != CreateRecord && next.Quota.Listed.has(self.Record):
			self.Step = self.Then
		case c.Mistake == W34 && self.Unseen != 0:
			self.Step = self.stepWithRoom()
			if bits.OnesCount8(uint8(next.Quota.Listed&^self.Unseen)) >= c.Quota {
				c.refuseUncounted(next, self)
			}
		case next.Quota.count() < c.Quota:
			self.Step = self.stepWithRoom()
		default:
			self.Step = ListRecordsOfQuota
		}
		return nil
	})
}

func (self *Process) stepWithRoom() Step {
	if self.Then == CreateRecord {
		return CreateRecord
	}
	return EnterQuota
}

// Q1: LIST the records, after the quota was read: an entry whose record is not there is gone for ever.
func (c *call) listRecordsOfQuota() {
	c.read("", func(next *State, self *Process) *Violation {
		if c.Mistake == W34 {
			for record := range uint8(c.RecordCount) {
				if next.Records[record].Phase == Absent {
					self.Unseen = self.Unseen.with(record)
				}
			}
			self.Step = GetQuota
			return nil
		}
		self.Pruned = next.Quota.Gone
		self.Step = self.stepWithRoom()
		if next.Quota.count()-int(self.Pruned) >= c.Quota {
			c.refuseUncounted(next, self)
		}
		return nil
	})
}

// refuseUncounted ends a claim that its consumer's quota has no room for: QuotaReached.
func (c *call) refuseUncounted(next *State, self *Process) {
	if self.Then == TakeMember || self.Then == GetMember && c.isOwnOrStale(next, self) {
		self.Step = DeleteUncounted
		return
	}
	c.finish(next, c.process)
}

// isOwnOrStale tells whether a Pending record is of nobody else, or not any more what was read.
func (c *call) isOwnOrStale(state *State, self *Process) bool {
	return !self.RecordFresh || state.Records[self.Record].Holders.only(c.operation.Holder)
}

// Q2: CAS the quota: this claim's record in, and what was seen to be gone out.
func (c *call) enterQuota() {
	c.write(QuotaWrite, noHolder, c.self().QuotaFresh, func(next *State, self *Process) *Violation {
		next.Quota.Listed &^= self.Unseen
		next.Quota.Gone -= self.Pruned
		if self.RecordGone {
			next.Quota.Gone++
		} else {
			next.Quota.Listed = next.Quota.Listed.with(self.Record)
		}
		for process := range c.Scripts {
			next.Processes[process].QuotaFresh = false
		}
		return nil
	}, func(_ *State, self *Process) {
		self.Step, self.Pruned = self.Then, 0
	}, func(_ *State, self *Process) {
		self.Step, self.Pruned, self.QuotaFresh = GetQuota, 0, false
	})
}

// Q3: DELETE R, which this holder alone began: QuotaReached.
func (c *call) deleteUncounted() {
	c.casRecord(noHolder, deleted, c.end, c.again)
}

// keptAtBinding gives those holders of a Pending record that stay when one of this operation's consumer binds it:
// the others have not entered their quota, or nobody knows, and join by themselves.
func (c *call) keptAtBinding(holders Holders) Holders {
	switch {
	case c.Counted == noHolder || c.Mistake == W33:
		return holders
	case c.isCounted():
		return holders & c.Counted
	}
	return holders &^ c.Counted
}

// leaveQuota makes the entry of a record that is deleted one that names nothing any more.
func (s *Scenario) leaveQuota(state *State, record uint8) {
	if state.Quota.Listed.has(record) {
		state.Quota.Listed &^= RecordSet(0).with(record)
		state.Quota.Gone++
	}
	for process := range s.Scripts {
		if self := &state.Processes[process]; self.Record == record {
			self.RecordGone = true
		}
	}
}

func (s *Scenario) boundByConsumer(state *State) int {
	count := 0
	for number := range s.RecordCount {
		if record := &state.Records[number]; record.Phase == Bound && record.Holders&s.Counted != noHolder {
			count++
		}
	}
	return count
}
