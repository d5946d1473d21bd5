package main

// editByHand: an operator changes any one object it applies to, without looking at resourceVersions.
func (c *call) editByHand() {
	switch c.operation.Kind {
	case EditDeleteRecord:
		c.destroyRecord()
		return
	case EditRestoreRecord:
		c.restoreRecord()
		return
	case EditLoseSettings:
		c.loseSettings()
		return
	}
	for number := range uint8(c.MemberCount) {
		member := c.before.Members[number]
		if !member.Exists {
			continue
		}
		edited, touch := c.edit(c.operation.Kind, member)
		if edited == member { // a patch that changes nothing leaves the resourceVersion as it is
			continue
		}
		next, _, transition := c.add(memberName(number), false)
		c.storeMember(next, number, edited, server)
		if member.Before == GivenUp && edited.Condition != Quarantined {
			transition.Violation = givenUpReturned
		}
		if touch != Untouched {
			next.Touched[number] = touch
		}
		c.finish(next, c.process)
	}
}

// edit gives the member after a hand edit. A pool-state set by hand leaves the claim intact: Untouched.
func (s *Scenario) edit(kind OperationKind, member Member) (Member, Touch) {
	switch kind {
	case EditDeleteMember:
		return Member{}, Edited
	case EditStripLabel:
		member.Tenant, member.Kept = 0, false
		return member, Edited
	case EditRelabel:
		if member.Tenant == tenantT {
			member.Tenant, member.Kept = tenantU, false
		}
		return member, Edited
	case EditStripEverything:
		if member.Tenant != 0 {
			member.Tenant, member.Origin, member.Marks, member.Kept = 0, NoOrigin, [maxTokens]Mark{}, false
		}
		return member, EvidenceRemoved
	case EditUnquarantine:
		if member.Condition == Quarantined && (member.Before != GivenUp || s.Mistake == W28) {
			member.Condition, member.Before = conditionOnceAllowed(&member), WasUsable
		}
	case EditQuarantine:
		return s.quarantined(member), Untouched
	case EditDecommission:
		if member.count() == 0 && member.Condition != Cleaning {
			member.Condition, member.Before, member.Kept = Quarantined, GivenUp, false
		}
	case EditMarkDirty:
		member.Condition, member.Soiled, member.Kept = Dirty, true, false
	case EditTakeTokenOff:
		if member.count() != 0 && member.Origin == FromPool && member.Condition == Usable {
			member.Condition, member.Marks = Dirty, [maxTokens]Mark{}
			return member, Edited
		}
	case EditReturn:
		if member.Origin == Retained && member.count() == 0 && member.Condition != Cleaning {
			member.Origin, member.Soiled, member.Kept = FromPool, true, false
			if member.Condition == Usable {
				member.Condition = Dirty
			}
		}
	}
	return member, Untouched
}

// conditionOnceAllowed is where a quarantined member goes back to: dirty when it was, or a tenant gave it back.
func conditionOnceAllowed(member *Member) Condition {
	if member.Origin == FromPool && member.count() == 0 || member.Before != WasUsable {
		return Dirty
	}
	return Usable
}

func (c *call) destroyRecord() {
	for number := range uint8(c.RecordCount) {
		if c.before.Records[number].Phase == Absent {
			continue
		}
		next, _, _ := c.add(recordName(number), false)
		c.writeRecord(next, number, Record{}, noHolder, server)
		next.RecordsDestroyed[number] = true
		c.finish(next, c.process)
	}
}

// restoreRecord brings a Bound record back as a backup has it: everything but its uid, so its token, is the same.
func (c *call) restoreRecord() {
	for number := range uint8(c.RecordCount) {
		record := c.before.Records[number]
		if record.Phase != Bound {
			continue
		}
		next, _, _ := c.add(recordName(number), false)
		record.Token = c.newToken(next)
		c.writeRecord(next, number, record, noHolder, server)
		next.RecordsRestored[number] = true
		c.finish(next, c.process)
	}
}

// loseSettings deletes or changes the pool's settings, while tenant T has its claim.
func (c *call) loseSettings() {
	if c.before.Records[recordT].Phase != Bound && c.Mistake != W23 {
		return
	}
	next, _, _ := c.add("", false)
	next.SettingsLost = true
	c.finish(next, c.process)
}
