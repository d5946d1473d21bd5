package main

// editByHand: an operator changes any one object it applies to, without looking at resourceVersions.
func (c *call) editByHand() {
	if c.operation.Kind == EditDeleteRecord {
		c.destroyRecord()
		return
	}
	for number := range uint8(c.MemberCount) {
		member := c.before.Members[number]
		if !member.Exists {
			continue
		}
		edited, touch := edit(c.operation.Kind, member)
		if edited == member { // a patch that changes nothing leaves the resourceVersion as it is
			continue
		}
		next, _, _ := c.add(memberName(number), false)
		c.storeMember(next, number, edited, server)
		if touch != Untouched {
			next.Touched[number] = touch
		}
		c.finish(next, c.process)
	}
}

// edit gives the member after a hand edit. A pool-state set by hand leaves the claim intact: Untouched.
func edit(kind OperationKind, member Member) (Member, Touch) {
	switch kind {
	case EditDeleteMember:
		return Member{}, Edited
	case EditStripLabel:
		member.Tenant = 0
		return member, Edited
	case EditRelabel:
		if member.Tenant == tenantT {
			member.Tenant = tenantU
		}
		return member, Edited
	case EditStripEverything:
		if member.Tenant != 0 {
			member.Tenant, member.Origin, member.Marks = 0, NoOrigin, [maxTokens]Mark{}
		}
		return member, EvidenceRemoved
	case EditUnquarantine:
		if member.Condition == Quarantined {
			member.Condition = conditionOnceAllowed(&member)
		}
	case EditQuarantine:
		member.Condition = Quarantined
	case EditMarkDirty:
		member.Condition = Dirty
	}
	return member, Untouched
}

// conditionOnceAllowed is where a quarantined member goes back to: dirty when a tenant gave it back.
func conditionOnceAllowed(member *Member) Condition {
	if member.Origin == FromPool && member.count() == 0 {
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
