package main

import "math/bits"

// server stands for no process: a write that comes late, or a hand edit.
const server = -1

// writeRecord puts a record on the server: it is no longer fresh for anybody but its writer. raises: the
// holders whose sequence numbers this write raises.
func (s *Scenario) writeRecord(state *State, record uint8, value Record, raises Holders, writer int) {
	if s.Quota > 0 && value.Phase == Absent {
		s.leaveQuota(state, record)
	}
	state.Records[record] = value
	if value.Phase == Bound && state.Members[value.Member].bears(value.Token) {
		state.Members[value.Member].Kept = false
	}
	if raises != noHolder {
		s.overtake(state, record, raises)
	}
	if state.InFlight.Kind == RecordWrite && state.InFlight.Object == record {
		state.InFlight = InFlight{} // its resourceVersion is old now: it will be refused
	}
	for process := range s.Scripts {
		if self := &state.Processes[process]; self.Record == record {
			self.RecordFresh = false
		}
	}
	if writer != server {
		state.Processes[writer].RecordFresh = true
	}
}

// writeMember puts a member on the server for a process of the protocol, and tells whether that breaks I1 or I8.
func (s *Scenario) writeMember(state *State, member uint8, value Member, writer int) *Violation {
	violation := s.judgeMemberWrite(state, member, &value, writer)
	s.storeMember(state, member, value, writer)
	return violation
}

// storeMember puts a member on the server, whoever writes it.
func (s *Scenario) storeMember(state *State, member uint8, value Member, writer int) {
	state.Members[member] = value
	if state.InFlight.Kind == MemberWrite && state.InFlight.Object == member {
		state.InFlight = InFlight{}
	}
	for process := range s.Scripts {
		if self := &state.Processes[process]; self.Member == member {
			self.MemberFresh = false
		}
	}
	if writer != server {
		state.Processes[writer].MemberFresh = true
	}
}

// newToken gives a symbol nobody remembers: the server never makes the same uid twice.
func (s *Scenario) newToken(state *State) Token {
	used := uint64(1) // 0 is no token
	for record := range s.RecordCount {
		used |= 1 << state.Records[record].Token
	}
	for member := range s.MemberCount {
		used |= tokensOf(&state.Members[member])
	}
	for process := range s.Scripts {
		used |= 1<<state.Processes[process].Token | 1<<state.Processes[process].OtherToken
	}
	used |= 1<<state.InFlight.Record.Token | tokensOf(&state.InFlight.Member)
	return Token(bits.TrailingZeros64(^used))
}

func tokensOf(member *Member) uint64 {
	used := uint64(1) << member.CleaningToken
	for _, mark := range member.Marks {
		used |= 1 << mark.Token
	}
	return used
}

// isRestored tells whether a token that looks dead is that of a claim that came back from a backup. Only a restore
// leads to a Bound record whose member bears another token of its name.
func (s *Scenario) isRestored(state *State, member uint8, mark Mark) bool {
	record := &state.Records[mark.Record]
	isBoundHere := mark.Token != 0 && record.Phase == Bound && record.Member == member
	return isBoundHere && record.Token != mark.Token && !state.Members[member].bears(record.Token)
}

// keysOf tells under which keys a record was made.
func (s *Scenario) keysOf(record uint8) Keys {
	if record+1 == s.Displaced {
		return OtherKeys
	}
	return DeclaredKeys
}

// isLive tells whether a GET of the record a token names would show that very token.
func (s *Scenario) isLive(state *State, token Token, record uint8) bool {
	return state.Records[record].Phase != Absent && state.Records[record].Token == token
}
