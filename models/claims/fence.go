package main

// Sequence numbers are modelled exactly, without numbers: all a release asks is whether its holder was given a
// higher one since. So each process remembers, per claim of its script, whether that claim was overtaken.

// hasFences tells whether any release shows a sequence number.
func (s *Scenario) hasFences() bool {
	for _, script := range s.Scripts {
		for _, operation := range script {
			if operation.Shows != latest {
				return true
			}
		}
	}
	return false
}

// overtake notes that these holders of a record got new sequence numbers.
func (s *Scenario) overtake(state *State, record uint8, holders Holders) {
	for process, script := range s.Scripts {
		for index, operation := range script {
			if operation.Kind == Claim && operation.Record == record && holders.has(operation.Holder) {
				state.Processes[process].Fences &^= 1 << index
			}
		}
	}
}

// remember notes that a claim returns the newest sequence number of its holder.
func (c *call) remember(self *Process) { self.Fences |= 1 << self.Operation }

// holds tells whether the claim a process got still counts.
func (s *Scenario) holds(state *State, process int) bool {
	self := &state.Processes[process]
	if self.Held == 0 || !s.OneHolder {
		return self.Held != 0
	}
	return self.Fences&(1<<s.heldOperation(state, process)) != 0
}

// heldOperation is the index of the claim that returned what a process holds.
func (s *Scenario) heldOperation(state *State, process int) int {
	index := int(state.Processes[process].Operation) - 1
	for s.Scripts[process][index].Kind != Claim {
		index--
	}
	return index
}

// isOvertaken tells whether the release means a claim that another claim of the same holder followed.
func (c *call) isOvertaken(self *Process) bool {
	return c.operation.Shows != latest && c.Mistake != W19 && self.Fences&(1<<(c.operation.Shows-1)) == 0
}

// isLastClaim tells whether a release means the claim its process holds, rather than one before.
func (c *call) isLastClaim(self *Process) bool {
	if c.operation.Shows == latest {
		return true
	}
	script := c.Scripts[c.process]
	for _, later := range script[c.operation.Shows:self.Operation] {
		if later.Kind == Claim && later.Record == c.operation.Record && later.Holder == c.operation.Holder {
			return false
		}
	}
	return true
}
