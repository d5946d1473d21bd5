package main

import "hash/maphash"

// Two states are one when they differ only in the names of tokens or of members that began alike. Each is
// kept as a 128-bit fingerprint of its canonical form.

type permutation [maxMembers]uint8 // member number -> its number in the canonical form

type fingerprint [2]uint64

var fingerprintSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

type canonicalizer struct {
	*Scenario
	permutations []permutation
	hasFences    bool // some release shows a sequence number, so it matters who was overtaken
	best, other  []byte
}

func newCanonicalizer(s *Scenario, foldMembers bool) *canonicalizer {
	c := &canonicalizer{Scenario: s, hasFences: s.hasFences()}
	all := []permutation{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	if !foldMembers {
		all = all[:1]
	}
	for _, p := range all {
		if s.beganAlike(p) {
			c.permutations = append(c.permutations, p)
		}
	}
	return c
}

// beganAlike tells whether a permutation exchanges only members the scenario begins with in equal shape.
func (s *Scenario) beganAlike(p permutation) bool {
	for number, renumbered := range p {
		isUsed := number < s.MemberCount
		if isUsed && (int(renumbered) >= s.MemberCount || s.Members[number] != s.Members[renumbered]) {
			return false
		}
		if !isUsed && int(renumbered) != number {
			return false
		}
	}
	return true
}

// fingerprint identifies a state up to the names of tokens and of equal members.
func (c *canonicalizer) fingerprint(state *State) fingerprint {
	c.best = c.encode(state, &c.permutations[0], c.best[:0])
	for i := 1; i < len(c.permutations); i++ {
		c.other = c.encode(state, &c.permutations[i], c.other[:0])
		if string(c.other) < string(c.best) {
			c.best, c.other = c.other, c.best
		}
	}
	// The table takes the zero fingerprint for an empty place.
	return fingerprint{maphash.Bytes(fingerprintSeeds[0], c.best) | 1, maphash.Bytes(fingerprintSeeds[1], c.best)}
}

// renaming gives tokens their canonical names, in the order in which they are met.
type renaming struct {
	names [64]uint8
	count uint8
}

func (r *renaming) of(token Token) byte {
	if token == 0 {
		return 0
	}
	if r.names[token] == 0 {
		r.count++
		r.names[token] = r.count
	}
	return r.names[token]
}

func bit(is bool, position uint8) byte {
	if is {
		return 1 << position
	}
	return 0
}

// encode writes all of a state that matters, with members renumbered.
func (c *canonicalizer) encode(state *State, to *permutation, bytes []byte) []byte {
	var from permutation
	for number := range uint8(c.MemberCount) {
		from[to[number]] = number
	}
	var tokens renaming
	for number := range c.RecordCount {
		bytes = encodeRecord(&state.Records[number], to, &tokens, bytes)
		bytes = append(bytes, bit(state.RecordsDestroyed[number], 0)|bit(state.RecordsRestored[number], 1))
	}
	bytes = append(bytes, bit(state.SettingsLost, 0))
	if c.Quota > 0 {
		bytes = append(bytes, byte(state.Quota.Listed)|state.Quota.Gone<<4)
	}
	for number := range c.MemberCount {
		bytes = c.encodeMember(&state.Members[from[number]], &tokens, bytes)
		bytes = append(bytes, byte(state.Touched[from[number]]))
	}
	for number := range c.Scripts {
		bytes = c.encodeProcess(&state.Processes[number], to, &tokens, bytes)
	}
	if late := &state.InFlight; late.Kind != NoWrite {
		object := late.Object
		if late.Kind == MemberWrite {
			object = to[object]
		}
		bytes = append(bytes, byte(late.Kind), object)
		if c.hasFences {
			bytes = append(bytes, byte(late.Raises))
		}
		bytes = encodeRecord(&late.Record, to, &tokens, bytes)
		bytes = c.encodeMember(&late.Member, &tokens, bytes)
	}
	return bytes
}

func encodeRecord(record *Record, to *permutation, tokens *renaming, bytes []byte) []byte {
	member := record.Member
	if record.Phase != Absent {
		member = to[member]
	}
	return append(bytes, byte(record.Phase)|bit(record.WasBound, 2)|member<<4, tokens.of(record.Token), byte(record.Holders))
}

func (c *canonicalizer) encodeMember(member *Member, tokens *renaming, bytes []byte) []byte {
	bytes = append(bytes,
		bit(member.Exists, 0)|byte(member.Condition)<<1|bit(member.Kept, 3)|byte(member.Origin)<<4|byte(member.Before)<<6,
		byte(member.Tenant)|member.Cleaner<<4|bit(member.Soiled, 7), tokens.of(member.CleaningToken))
	for i := range c.Capacity {
		bytes = append(bytes, tokens.of(member.Marks[i].Token), member.Marks[i].Record)
	}
	return bytes
}

func (c *canonicalizer) encodeProcess(self *Process, to *permutation, tokens *renaming, bytes []byte) []byte {
	member, held, unavailable := uint8(0), self.Held, self.Unavailable
	if self.Step.namesMember() {
		member = to[self.Member]
	}
	if held != 0 {
		held = to[held-1] + 1
	}
	if unavailable != 0 {
		unavailable = to[unavailable-1] + 1
	}
	var skipped MemberSet
	for number := uint8(0); self.Skipped>>number != 0; number++ {
		if self.Skipped.has(number) {
			skipped = skipped.with(to[number])
		}
	}
	flags := bit(self.RecordFresh, 0) | bit(self.MemberFresh, 1) | bit(self.HolderListed, 2) |
		bit(self.Moving, 3) | bit(self.LabelledHere, 4) | bit(self.SeenNamed, 5) | bit(self.MayBegin, 6)
	bytes = append(bytes,
		self.Operation, byte(self.Step), self.Record|member<<4, tokens.of(self.Token), flags,
		tokens.of(self.OtherToken), self.OtherRecord|byte(skipped)<<4, held|byte(self.Keys)<<2|unavailable<<4)
	if c.hasFences {
		bytes = append(bytes, self.Fences)
	}
	if c.Quota > 0 {
		known := bit(self.QuotaFresh, 0) | bit(self.RecordGone, 1)
		bytes = append(bytes, known|self.Pruned<<2|byte(self.Unseen)<<4, byte(self.Then))
	}
	return bytes
}
