package main

// Read: GET R. Without this holder in a Bound record the claim is gone.
func (c *call) getRecordToRead() {
	c.read("", func(next *State, self *Process) *Violation {
		record := next.Records[self.Record]
		if record.Phase != Bound || !record.Holders.has(c.operation.Holder) {
			isHeld := c.holds(next, c.process)
			c.finish(next, c.process)
			if isHeld && !next.RecordsDestroyed[c.operation.Record] {
				return heldButGone
			}
			return nil
		}
		self.Member, self.Token, self.RecordFresh = record.Member, record.Token, true
		self.Step = GetMemberToRead
		return nil
	})
}

// Read: GET M.
func (c *call) getMemberToRead() {
	c.read("", func(next *State, self *Process) *Violation {
		if c.carries(&next.Members[self.Member], c.tenant(), self.Token) {
			c.finish(next, c.process)
		} else {
			self.Step = GetRecordToReadAgain
		}
		return nil
	})
}

// Read: GET R again: unchanged means that the member is lost, changed means to start over.
func (c *call) getRecordToReadAgain() {
	c.read("", func(next *State, self *Process) *Violation {
		if !self.RecordFresh {
			c.restart(next, c.process)
			return nil
		}
		member, record := self.Member, self.Record
		c.finish(next, c.process)
		if c.isUntouched(next, member, record) {
			return lostButUntouched
		}
		return nil
	})
}
