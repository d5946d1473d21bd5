package main

import "fmt"

const (
	tenantT Tenant = 1 + iota
	tenantU
	tenantV
)

// The records: tenant T, tenant U, and a third that is another slot of T or, with three tenants, V's.
const (
	recordT  uint8 = 0
	recordU  uint8 = 1
	recordT2 uint8 = 2
	recordV  uint8 = 2
)

const (
	holder1 Holders = 1 << iota
	holder2
	holder3
	holder4
)

func claims(record uint8, holder Holders) Script {
	return Script{{Kind: Claim, Record: record, Holder: holder}}
}

func claimsAndReleases(record uint8, holder Holders) Script {
	return Script{
		{Kind: Claim, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder},
	}
}

func readsAndReleases(record uint8, holder Holders) Script {
	return Script{
		{Kind: Claim, Record: record, Holder: holder},
		{Kind: Read, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder},
	}
}

func reclaims(record uint8, holder Holders) Script {
	return Script{
		{Kind: Claim, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder},
		{Kind: Claim, Record: record, Holder: holder},
	}
}

// replaces is what a resource with create-before-delete does: it claims again before it releases the old claim.
func replaces(record uint8, holder Holders) Script {
	return Script{
		{Kind: Claim, Record: record, Holder: holder},
		{Kind: Claim, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder, Shows: 1},
		{Kind: Read, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder, Shows: 2},
	}
}

// returns is a replacement after somebody released the old claim by hand: only the fence of the new one counts.
func returns(record uint8, holder Holders) Script {
	return Script{
		{Kind: Claim, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder},
		{Kind: Claim, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder, Shows: 1},
		{Kind: Read, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder, Shows: 3},
	}
}

// claimsAndShows releases with the sequence number of its claim.
func claimsAndShows(record uint8, holder Holders) Script {
	return Script{
		{Kind: Claim, Record: record, Holder: holder},
		{Kind: Release, Record: record, Holder: holder, Shows: 1},
	}
}

func once(kind OperationKind) Script { return Script{{Kind: kind}} }

func twice(kind OperationKind) Script { return Script{{Kind: kind}, {Kind: kind}} }

// run runs one process per script on free members of one pool, with policy release, crashes and lost
// answers.
func run(name string, members int, scripts ...Script) Scenario {
	scenario := Scenario{
		Name:        name,
		RecordCount: 2,
		MemberCount: members,
		TenantOf:    [maxRecords]Tenant{recordT: tenantT, recordU: tenantU, recordT2: tenantT},
		Scripts:     scripts,
		Capacity:    1,
		Faults:      Faults{Crashes: true, LostAnswers: true},
	}
	for member := range members {
		scenario.Members[member].Exists = true
	}
	return scenario
}

// with gives the scenario changed by options.
func (s Scenario) with(options ...func(*Scenario)) Scenario {
	for _, option := range options {
		option(&s)
	}
	return s
}

func threeRecords(s *Scenario)      { s.RecordCount = 3 }
func threeTenants(s *Scenario)      { s.RecordCount, s.TenantOf[recordV] = 3, tenantV }
func noFaults(s *Scenario)          { s.Faults = Faults{} }
func noCrashes(s *Scenario)         { s.Faults.Crashes = false }
func crashesOnly(s *Scenario)       { s.Faults.LostAnswers = false }
func lateWrites(s *Scenario)        { s.Faults.LateWrites = true }
func abandonedReleases(s *Scenario) { s.Faults.AbandonedReleases = true }
func spareFourth(s *Scenario)       { s.Faults.Spared = 1 << 3 }
func failedWipes(s *Scenario)       { s.Faults.FailedWipes = true }
func listsSideBySide(s *Scenario)   { s.ListsSideBySide = true }
func oneHolder(s *Scenario)         { s.OneHolder = true }
func takeOver(s *Scenario)          { s.TakeOver = true }
func noOrphans(s *Scenario)         { s.NoOrphans = true }
func evidenceDestroyed(s *Scenario) { s.EvidenceDestroyed = true }

func policy(policy Policy) func(*Scenario) {
	return func(s *Scenario) { s.Policy = policy }
}

func holderLimit(limit int) func(*Scenario) {
	return func(s *Scenario) { s.HolderLimit = limit }
}

// spill limits the holders of a claim, and lets a claim of recordT go to recordT2 beyond that.
func spill(limit int) func(*Scenario) {
	return func(s *Scenario) {
		threeRecords(s)
		s.HolderLimit, s.Spill = limit, true
	}
}

// shared gives each member this capacity, and each consumer a record of its own.
func shared(capacity int) func(*Scenario) {
	return func(s *Scenario) {
		threeTenants(s)
		s.Shared, s.Capacity = true, capacity
	}
}

// displaced gives tenant T's request another record where the settings are lost.
func displaced(s *Scenario) {
	threeRecords(s)
	s.Displaced = recordT2 + 1
}

// brought labels the first members with the tenants that brought them.
func brought(tenants ...Tenant) func(*Scenario) {
	return func(s *Scenario) {
		for member, tenant := range tenants {
			s.Members[member].Tenant = tenant
		}
	}
}

// quota lets a consumer with these holders have so many accounts at most.
func quota(most int, counted Holders) func(*Scenario) {
	return func(s *Scenario) { s.Quota, s.Counted = most, counted }
}

// dirty is a pool with policy clean whose first member tenant T gave back.
func dirty(s *Scenario) {
	s.Policy = PolicyClean
	s.Members[0].Condition, s.Members[0].Tenant, s.Members[0].Origin = Dirty, tenantT, FromPool
	s.Members[0].Soiled = true
}

// retained is a pool whose first member tenant T retained.
func retained(s *Scenario) {
	s.Members[0].Tenant, s.Members[0].Origin, s.Members[0].Kept = tenantT, Retained, true
}

var (
	claimT1      = claims(recordT, holder1)
	againT1      = append(claims(recordT, holder1), claims(recordT, holder1)...)
	claimT2      = claims(recordT, holder2)
	claimU       = claims(recordU, holder3)
	releaseT1    = claimsAndReleases(recordT, holder1)
	releaseT2    = claimsAndReleases(recordT, holder2)
	releaseU     = claimsAndReleases(recordU, holder3)
	releaseT2nd  = claimsAndReleases(recordT2, holder2)
	reclaimT1    = reclaims(recordT, holder1)
	reclaimT2    = reclaims(recordT, holder2)
	reclaimU     = reclaims(recordU, holder3)
	sweep        = once(SweepMembers)
	sweepRecords = once(SweepRecords)
	clean        = once(Clean)
	restore      = once(EditRestoreRecord)
	loseSettings = once(EditLoseSettings)
)

// scenarios are the right protocol, in the groups of the table in the README.
func scenarios() []Scenario {
	var all []Scenario
	for _, group := range [][]Scenario{
		firstClaims(), releases(), sweeps(), slots(), bringYourOwn(), cleaners(), handEdits(),
		sharedMembers(), holderLimits(), spills(), largerMixes(), withoutCrashes(), oneTenant(), lateWriteScenarios(),
		replacements(), quarantines(), sideBySide(), lostSettings(), restoredRecords(), quotas(),
		retainedMembers(),
	} {
		all = append(all, group...)
	}
	return all
}

var threePolicies = []Policy{PolicyRelease, PolicyRetain, PolicyClean}

// A: first claims.
func firstClaims() (group []Scenario) {
	for n := 1; n <= 3; n++ {
		group = append(group,
			run(fmt.Sprintf("A claim TTU m%d", n), n, claimT1, claimT2, claimU),
			run(fmt.Sprintf("A claim TTTU m%d", n), n, claimT1, claimT2, claims(recordT, holder4), claimU))
	}
	return append(group,
		run("A claim TTUV m2 (3 tenants)", 2, claimT1, claimT2, claimU, claims(recordV, holder4)).
			with(threeTenants))
}

// B: claim, read, release, claim again, with every policy.
func releases() (group []Scenario) {
	for _, p := range threePolicies {
		name, use := policyNames[p], policy(p)
		for n := 1; n <= 3; n++ {
			group = append(group,
				run(fmt.Sprintf("B claim+release TTU m%d %s", n, name), n, releaseT1, releaseT2, releaseU).
					with(use),
				run(fmt.Sprintf("B reclaim TTU m%d %s", n, name), n, reclaimT1, releaseT2, releaseU).
					with(use))
		}
		group = append(group,
			run("B read+release TTU m2 "+name, 2, readsAndReleases(recordT, holder1), releaseT2, releaseU).
				with(use),
			run("B reclaim x3 m2 "+name, 2, reclaimT1, reclaimT2, reclaimU).with(use))
	}
	return group
}

// C: sweeps of members and of records beside claims and releases.
func sweeps() (group []Scenario) {
	for _, p := range threePolicies {
		name, use := policyNames[p], policy(p)
		for n := 1; n <= 3; n++ {
			group = append(group,
				run(fmt.Sprintf("C +sweep TTU m%d %s", n, name), n, releaseT1, releaseT2, releaseU, sweep).
					with(use),
				run(fmt.Sprintf("C +record sweep TTU m%d %s", n,
					name), n, claimT1, releaseT2, claimU, sweepRecords).
					with(use, spareFourth),
				run(fmt.Sprintf("C +crashing record sweep TT m%d %s", n,
					name), n, releaseT1, releaseT2, sweepRecords).
					with(use),
				run(fmt.Sprintf("C +crashing record sweep TU m%d %s", n,
					name), n, releaseT1, releaseU, sweepRecords).
					with(use))
		}
		group = append(group,
			run("C +both sweeps TU m2 "+name, 2, releaseT1, releaseU, sweep, sweepRecords).
				with(use, spareFourth))
	}
	return append(group,
		run("C both sweeps, two of each, TT m2", 2, releaseT1, releaseT2, twice(SweepMembers), sweepRecords))
}

// D: two slots of one tenant beside another tenant.
func slots() (group []Scenario) {
	for n := 1; n <= 3; n++ {
		group = append(group,
			run(fmt.Sprintf("D slots TT' + U m%d", n), n, releaseT1, releaseT2nd, releaseU).
				with(threeRecords),
			run(fmt.Sprintf("D slots TTT' m%d", n), n, releaseT1, releaseT2, claimsAndReleases(recordT2, holder4)).
				with(threeRecords),
			run(fmt.Sprintf("D slots TT'U+sweep m%d", n), n, releaseT1, releaseT2nd, releaseU, sweep).
				with(threeRecords))
	}
	return group
}

// E: members that tenants brought beside members of the pool.
func bringYourOwn() (group []Scenario) {
	for _, p := range threePolicies {
		name, use := policyNames[p], policy(p)
		group = append(group,
			run("E byo + pool TTU m2 "+name, 2, releaseT1, releaseT2, releaseU, sweep).
				with(use, brought(tenantT)),
			run("E 2 byo, slots TT'U m3 "+name, 3, releaseT1, releaseT2nd, releaseU).
				with(use, threeRecords, brought(tenantT, tenantT)),
			run("E byo of the other tenant TU m2 "+name, 2, reclaimT1, releaseU, sweep).
				with(use, brought(tenantU)))
	}
	return group
}

// F: cleaners.
func cleaners() (group []Scenario) {
	group = []Scenario{
		run("F cleaner cleaner TU m1", 1, reclaimT1, releaseU, clean, clean).with(policy(PolicyClean)),
		run("F cleaner cleaner TU m2", 2, reclaimT1, releaseU, clean, clean).with(policy(PolicyClean)),
		run("F cleaner cleaner dirty TU m1", 1, releaseT1, releaseU, clean, clean).with(dirty),
		run("F cleaner x2 each dirty TU m2", 2, releaseT1, releaseU, twice(Clean), clean).with(dirty),
		run("F cleaner cleaner sweep dirty TU m2", 2, releaseT1, releaseU, clean, clean, sweep).
			with(dirty),
		run("F take-over with credential rotation TU m1", 1, releaseT1, releaseU, clean, clean).
			with(dirty, takeOver),
		run("F take-over with credential rotation TU m2", 2, releaseT1, releaseU, clean, clean).
			with(dirty, takeOver),
	}
	for _, p := range threePolicies {
		group = append(group,
			run("F byo marked dirty by hand, cleaner TU m2 "+policyNames[p], 2,
				releaseT1, releaseU, once(EditMarkDirty), clean).
				with(policy(p), brought(tenantT)))
	}
	return group
}

// G: one edit by hand, at any moment, of any member or record.
func handEdits() (group []Scenario) {
	edits := func(edit OperationKind, n int, options ...func(*Scenario)) []Scenario {
		name := operationNames[edit]
		return []Scenario{
			run(fmt.Sprintf("G %s TTU m%d", name, n), n, releaseT1, releaseT2, releaseU, once(edit)).
				with(options...),
			run(fmt.Sprintf("G %s TU+sweep m%d", name, n), n, reclaimT1, releaseU, sweep, once(edit)).
				with(options...),
		}
	}
	for _, edit := range []OperationKind{EditDeleteMember, EditStripLabel, EditRelabel, EditQuarantine, EditMarkDirty} {
		group = append(group, edits(edit, 1)...)
		group = append(group, edits(edit, 2)...)
		group = append(group,
			run(fmt.Sprintf("G %s TU+cleaner m2", operationNames[edit]), 2, releaseT1, releaseU, clean, once(edit)).
				with(policy(PolicyClean)))
	}
	for n := 1; n <= 2; n++ {
		group = append(group,
			run(fmt.Sprintf("G %s TU+cleaner m%d", operationNames[EditTakeTokenOff], n), n,
				releaseT1, releaseU, clean, once(EditTakeTokenOff)).
				with(policy(PolicyClean)))
	}
	for _, edit := range []OperationKind{EditDeleteRecord, EditStripEverything} {
		group = append(group, edits(edit, 1, evidenceDestroyed)...)
		group = append(group, edits(edit, 2, evidenceDestroyed)...)
	}
	return group
}

// H: shared members, one record per consumer, least used first.
func sharedMembers() (group []Scenario) {
	releaseV := claimsAndReleases(recordV, holder4)
	for n := 1; n <= 3; n++ {
		group = append(group,
			run(fmt.Sprintf("H shared cap2 TTUV m%d", n), n, releaseT1, releaseT2, releaseU, releaseV).
				with(shared(2)),
			run(fmt.Sprintf("H shared cap1 TUV m%d", n), n, releaseT1, releaseU, releaseV).
				with(shared(1)),
			run(fmt.Sprintf("H shared cap2 TUV+sweep m%d", n), n, releaseT1, releaseU, releaseV, sweep).
				with(shared(2)),
			run(fmt.Sprintf("H shared cap2 TUV+delete m%d", n), n,
				releaseT1, releaseU, releaseV, once(EditDeleteMember)).
				with(shared(2)))
	}
	return group
}

// S: claims that spill into a second account of the tenant beyond the limit of the first.
func spills() []Scenario {
	releaseT4 := claimsAndReleases(recordT, holder4)
	return []Scenario{
		run("S spill at 1: TT m1", 1, releaseT1, releaseT2).with(spill(1)),
		run("S spill at 1: TT m2", 2, releaseT1, releaseT2).with(spill(1)),
		run("S spill at 1: TT clean m2", 2, releaseT1, releaseT2).with(spill(1), policy(PolicyClean)),
		run("S spill at 1: TT again, U m2", 2, againT1, reclaimT2, claimU).with(spill(1)),
		run("S spill at 1: TTT m2", 2, releaseT1, claimT2, releaseT4).with(spill(1), crashesOnly),
		run("S spill at 2: TTT m2", 2, releaseT1, claimT2, releaseT4).with(spill(2), crashesOnly),
	}
}

// I: a limit of holders of one claim.
func holderLimits() []Scenario {
	releaseT4 := claimsAndReleases(recordT, holder4)
	return []Scenario{
		run("I limit 1 TTT m2", 2, releaseT1, releaseT2, releaseT4).with(holderLimit(1)),
		run("I limit 2 TTTU m2", 2, releaseT1, releaseT2, releaseT4, releaseU).with(holderLimit(2)),
	}
}

// J: larger mixes.
func largerMixes() []Scenario {
	return []Scenario{
		run("J TTU reclaim + sweep m3", 3, reclaimT1, reclaimT2, releaseU, sweep),
		run("J clean everything TTU m2", 2, reclaimT1, releaseT2, releaseU, clean, sweep).
			with(policy(PolicyClean)),
	}
}

// K: without crashes nothing is ever left for the sweep, lost answers or not.
func withoutCrashes() (group []Scenario) {
	for n := 1; n <= 3; n++ {
		group = append(group,
			run(fmt.Sprintf("K no crash, no orphan TTU m%d", n), n, reclaimT1, releaseT2, releaseU).
				with(noCrashes, noOrphans))
	}
	return group
}

// L: one tenant's parallel first claims.
func oneTenant() []Scenario {
	return []Scenario{run("L claim TTTT m2", 2,
		claimT1, claimT2, claims(recordT, holder3), claims(recordT, holder4))}
}

// M: late writes and abandoned releases.
func lateWriteScenarios() (group []Scenario) {
	for n := 1; n <= 2; n++ {
		for _, p := range threePolicies {
			group = append(group,
				run(fmt.Sprintf("M late writes TTU m%d %s", n, policyNames[p]), n, releaseT1, releaseT2, releaseU).
					with(lateWrites, policy(p)))
		}
		group = append(group,
			run(fmt.Sprintf("M late writes TU+sweep m%d", n), n, reclaimT1, releaseU, sweep).
				with(lateWrites),
			run(fmt.Sprintf("M late+abandoned release, fenced TTU m%d", n), n, reclaimT1, releaseT2, releaseU).
				with(lateWrites, abandonedReleases),
			run(fmt.Sprintf("M abandoned release, not late TTU m%d", n), n, reclaimT1, releaseT2, releaseU).
				with(abandonedReleases))
	}
	return append(group,
		run("M late writes, cleaners m1", 1, reclaimT1, releaseU, clean, clean).
			with(lateWrites, policy(PolicyClean)))
}

// N: replacement of a claim: the same holder claims again before its old claim is released.
func replacements() (group []Scenario) {
	replaceT1, returnT1 := replaces(recordT, holder1), returns(recordT, holder1)
	for n := 1; n <= 2; n++ {
		name := func(what string) string { return fmt.Sprintf("N %s m%d", what, n) }
		group = append(group,
			run(name("replace TU"), n, replaceT1, releaseU),
			run(name("replace TTU"), n, replaceT1, releaseT2, releaseU),
			run(name("return TTU"), n, returnT1, releaseT2, releaseU),
			run(name("replace TU+sweep"), n, replaceT1, releaseU, sweep),
			run(name("replace TU+record sweep"), n, replaceT1, releaseU, sweepRecords),
			run(name("one holder in two processes TTU"), n,
				claimsAndShows(recordT, holder1), claimsAndShows(recordT, holder1), releaseU).
				with(oneHolder),
			run(name("replace beside the same holder TT"), n, replaceT1, claimsAndShows(recordT, holder1)).
				with(oneHolder),
			run(name("late writes, replace TU"), n, replaceT1, releaseU).with(lateWrites),
			run(name("late writes, return TT"), n, returnT1, releaseT2).with(lateWrites),
			run(name("late+abandoned, replace TU"), n, replaceT1, releaseU).
				with(lateWrites, abandonedReleases))
	}
	return group
}

// O: members that come out of use: policy quarantine, wiping that fails.
func quarantines() (group []Scenario) {
	quarantine, unquarantine := policy(PolicyQuarantine), once(EditUnquarantine)
	for n := 1; n <= 2; n++ {
		name := func(what string) string { return fmt.Sprintf("O %s m%d", what, n) }
		group = append(group,
			run(name("quarantine: reclaim TTU"), n, reclaimT1, releaseT2, releaseU).with(quarantine),
			run(name("quarantine: TU+sweep"), n, reclaimT1, releaseU, sweep).with(quarantine),
			run(name("quarantine: TU+allowed+cleaner"), n, reclaimT1, releaseU, unquarantine, clean).
				with(quarantine),
			run(name("clean: TU+allowed+cleaner, wiping fails"), n, releaseT1, releaseU, unquarantine, clean).
				with(dirty, failedWipes),
			run(name("clean: TU+two cleaners, wiping fails"), n, releaseT1, releaseU, clean, clean).
				with(dirty, failedWipes),
			run(name("clean: TU+quarantined+allowed+cleaner, wiping fails"), n,
				releaseT1, once(EditQuarantine), unquarantine, clean).
				with(dirty, failedWipes),
			run(name("dirty+quarantined+allowed by hand, T+cleaner"), n,
				releaseT1, once(EditMarkDirty), once(EditQuarantine), unquarantine, clean),
			run(name("own, dirty+quarantined+allowed by hand, T+cleaner"), n,
				releaseT1, once(EditMarkDirty), once(EditQuarantine), unquarantine, clean).
				with(brought(tenantT)),
			run(name("given up+allowed+quarantined, TU+cleaner"), n,
				releaseT1, clean, once(EditDecommission), once(EditQuarantine), unquarantine).
				with(policy(PolicyClean)),
			run(name("retain: reclaim TU+returned+cleaner"), n, reclaimT1, releaseU, once(EditReturn), clean).
				with(policy(PolicyRetain)),
			run(name("retain: T+returned+quarantined+allowed+cleaner"), n,
				reclaimT1, once(EditReturn), once(EditQuarantine), unquarantine, clean).
				with(policy(PolicyRetain)))
	}
	return group
}

// Q: the pool's settings are lost or changed while a claim stands: requests mean records of other names.
func lostSettings() (group []Scenario) {
	for n := 1; n <= 3; n++ {
		name := func(what string) string { return fmt.Sprintf("Q settings lost: %s m%d", what, n) }
		group = append(group,
			run(name("claim TT"), n, claimT1, claimT2, loseSettings).with(displaced),
			run(name("claim TTT"), n, claimT1, claimT2, claims(recordT, holder4), loseSettings).with(displaced),
			run(name("claim TTU"), n, claimT1, claimT2, claimU, loseSettings).with(displaced),
			run(name("claim TT+sweep"), n, claimT1, claimT2, sweep, loseSettings).with(displaced))
	}
	return group
}

// R: a Bound record is restored from a backup while everybody is at work, and the settings do not tell.
func restoredRecords() (group []Scenario) {
	for n := 1; n <= 2; n++ {
		name := func(what string) string { return fmt.Sprintf("R restored: %s m%d", what, n) }
		for _, p := range threePolicies {
			group = append(group,
				run(name("TTU "+policyNames[p]), n, claimT1, releaseT2, releaseU, restore).with(policy(p)),
				run(name("TU+sweep "+policyNames[p]), n, releaseT1, releaseU, restore, sweep).with(policy(p)),
				run(name("slots TT'+sweep "+policyNames[p]), n, claimT1, releaseT2nd, restore, sweep).
					with(threeRecords, policy(p)))
		}
		group = append(group,
			run(name("TT+record sweep"), n, claimT1, releaseT2, restore, sweepRecords),
			run(name("TU+cleaner clean"), n, releaseT1, releaseU, restore, clean).with(policy(PolicyClean)),
			run(name("side by side TT'U"), n, claimT1, releaseT2nd, releaseU, restore).
				with(listsSideBySide, threeRecords),
			run(name("byo TT'+sweep"), n, reclaimT1, releaseT2nd, restore, sweep).
				with(threeRecords, brought(tenantT)))
	}
	return group
}

// P: find asks for the tenant's own and the free members at once.
func sideBySide() (group []Scenario) {
	for n := 1; n <= 2; n++ {
		name := func(what string) string { return fmt.Sprintf("P side by side: %s m%d", what, n) }
		group = append(group,
			run(name("claim TTU"), n, claimT1, claimT2, claimU).with(listsSideBySide),
			run(name("reclaim TTU"), n, reclaimT1, releaseT2, releaseU).with(listsSideBySide),
			run(name("reclaim TU+sweep, retain"), n, reclaimT1, releaseU, sweep).
				with(listsSideBySide, policy(PolicyRetain)),
			run(name("byo TT'U"), n, releaseT1, releaseT2nd, releaseU).
				with(listsSideBySide, threeRecords, brought(tenantT)),
			run(name("strip label TTU"), n, releaseT1, claimT2, releaseU, once(EditStripLabel)).
				with(listsSideBySide),
			run(name("no crash, no orphan TTU"), n, reclaimT1, releaseT2, releaseU).
				with(listsSideBySide, noCrashes, noOrphans))
	}
	return group
}

// tooLarge names what nobody has run yet with this source, for its size.
var tooLarge = []string{
	"H shared cap2 TTUV m2",
	"H shared cap2 TTUV m3",
	"I limit 2 TTTU m2",
	"J clean everything TTU m2",
	"M late+abandoned release, fenced TTU m2",
}

// T: quotas of a consumer, beside claims of others.
func quotas() []Scenario {
	one, two := quota(1, holder1|holder3), quota(2, holder1|holder2|holder3|holder4)
	return []Scenario{
		run("T quota 1: TU m2", 2, releaseT1, releaseU).with(one),
		run("T quota 1: reclaim TU m2", 2, reclaimT1, reclaimU).with(one),
		run("T quota 1: TU+both sweeps m2", 2, releaseT1, releaseU, sweep, sweepRecords).with(one, crashesOnly),
		run("T quota 1: TU+crashing record sweep m2", 2, releaseT1, releaseU, sweepRecords).with(one),
		run("T quota 1: TU and a helper of another consumer m2", 2, releaseT1, claimT2, releaseU).with(one),
		run("T quota 1: TT of one consumer, U m2", 2, releaseT1, releaseT2, releaseU).
			with(quota(1, holder1|holder2|holder3)),
		run("T quota 1: two slots of T m2", 2, releaseT1, releaseT2nd).
			with(threeRecords, quota(1, holder1|holder2)),
		run("T quota 2: TUV m3", 3, releaseT1, releaseU, claimsAndReleases(recordV, holder4)).
			with(threeTenants, two, crashesOnly),
		run("T quota 1: TUV m2, V of another consumer", 2, releaseT1, releaseU, claims(recordV, holder4)).
			with(threeTenants, one, crashesOnly),
	}
}

// U: a member that its tenant retained, beside claims that never come about.
func retainedMembers() (group []Scenario) {
	for n := 1; n <= 2; n++ {
		for _, p := range append(threePolicies, PolicyQuarantine) {
			name := func(what string) string { return fmt.Sprintf("U retained: %s %s m%d", what, policyNames[p], n) }
			use := policy(p)
			group = append(group,
				run(name("TTU"), n, claimT1, releaseT2, releaseU).with(retained, use),
				run(name("TU+record sweep"), n, releaseT1, releaseU, sweepRecords).with(retained, use),
				run(name("TT+both sweeps"), n, claimT1, claimT2, sweep, sweepRecords).with(retained, use, spareFourth),
				run(name("TT'+record sweep, cleaner"), n, claimT1, releaseT2nd, sweepRecords, clean).
					with(retained, use, threeRecords, spareFourth),
				run(name("T+quarantined+allowed+record sweep"), n,
					releaseT1, once(EditQuarantine), once(EditUnquarantine), sweepRecords).
					with(retained, use),
				run(name("T+record sweep, late writes"), n, reclaimT1, sweepRecords).with(retained, use, lateWrites))
		}
	}
	return group
}

// smallScope names what fits into a test: every kind of behaviour, with few processes and mostly one member.
var smallScope = []string{
	"A claim TTU m1",
	"A claim TTU m2",
	"B reclaim TTU m1 release",
	"B claim+release TTU m1 retain",
	"B claim+release TTU m1 clean",
	"C +crashing record sweep TU m1 release",
	"C +crashing record sweep TT m1 clean",
	"D slots TT' + U m1",
	"D slots TT' + U m2",
	"E byo of the other tenant TU m2 release",
	"E 2 byo, slots TT'U m3 release",
	"F cleaner cleaner dirty TU m1",
	"F take-over with credential rotation TU m1",
	"G OP:delete TU+sweep m1",
	"G OP:strip-label TU+sweep m1",
	"G OP:relabel TU+sweep m1",
	"G OP:quarantine TU+sweep m1",
	"G OP:dirty TU+sweep m1",
	"G OP:delete-record TU+sweep m1",
	"G OP:strip-all TU+sweep m1",
	"G OP:take-token-off TU+cleaner m1",
	"H shared cap1 TUV m1",
	"H shared cap2 TUV+delete m1",
	"K no crash, no orphan TTU m1",
	"M late writes TU+sweep m1",
	"M abandoned release, not late TTU m1",
	"N replace TTU m1",
	"N replace TU+sweep m1",
	"N one holder in two processes TTU m1",
	"N late writes, replace TU m1",
	"N late writes, return TT m1",
	"N late+abandoned, replace TU m1",
	"O quarantine: TU+allowed+cleaner m1",
	"O clean: TU+allowed+cleaner, wiping fails m1",
	"O clean: TU+two cleaners, wiping fails m1",
	"O retain: reclaim TU+returned+cleaner m1",
	"P side by side: claim TTU m1",
	"P side by side: byo TT'U m1",
	"O clean: TU+quarantined+allowed+cleaner, wiping fails m1",
	"O own, dirty+quarantined+allowed by hand, T+cleaner m1",
	"O given up+allowed+quarantined, TU+cleaner m1",
	"Q settings lost: claim TT m2",
	"Q settings lost: claim TTU m2",
	"R restored: TTU release m1",
	"T quota 1: TU m2",
	"T quota 1: two slots of T m2",
	"R restored: TU+sweep clean m1",
	"R restored: slots TT'+sweep release m2",
	"R restored: TT+record sweep m1",
	"S spill at 1: TT m1",
	"S spill at 1: TT m2",
	"U retained: TU+record sweep retain m1",
	"U retained: TT+both sweeps clean m1",
}
