package main

// Mistake is one deliberate deviation from the protocol. A checker that finds each of them is not vacuous.
type Mistake uint8

const (
	Correct Mistake = iota
	W1              // undo one's own label whenever the CAS to Bound fails, though a helper may have bound it
	W2              // ownership is the tenant label alone, no token: two slots
	W3              // the same: a slow releaser
	W4              // the cleaner always removes the owner
	W5              // the label alone: the sweep takes "labelled without a record" for an orphan
	W6              // release policy applied to a member the tenant brought
	W7              // the sweep lists records before members
	W8              // a token is judged dead by a record that was read before the member
	W9              // no sweep at all
	W10             // the cleaner reads again just before it frees
	W11             // cleaning is taken over without a new credential
	W12             // the cleaner takes dirty members that carry a token, and looks at no record
	W13             // free means "no tenant label", a token is ignored
	W14             // the label alone: an operator strips it
	W15             // exhaustion is reported without a second look at the record
	W16             // a known holder's repeated claim writes nothing
	W17             // a label stripped by hand is put back on Bound claims only
	W18             // a record is moved to the member it already names
	W19             // a release ignores the sequence number
	W20             // sequence numbers start over when a holder leaves and returns
	W21             // a sequence number is compared without the uid of its record
	W22             // a claim does not look whether others were made under other partition keys
	W23             // the partition keys change in an empty pool while somebody who read them is at work
	W24             // the sweep takes the token of a restored claim off
	W25             // a claim takes the token of a restored claim off
	W26             // a claim gives a member back although its record was bound and restored meanwhile
	W27             // a quarantine does not remember that the account was dirty
	W28             // an account that an operator gave up comes back like any quarantined one
	W29             // a release with policy retain leaves no trace that the member is the pool's
	W30             // a claim that spills does not look where its holder is already
	W31             // the cleaner takes what a claim is on, because its token is gone
	W32             // a quota is counted before the write, and nothing is written
	W33             // who binds a claim keeps a holder in it that has not entered its quota
	W34             // an entry of a quota is judged by records that were listed before it was read
	W35             // a claim takes a retained account as one that was free
	W36             // the policy of a claim that was never bound decides over a retained account
)

const labelOnlyMistakes uint32 = 1<<W1 | 1<<W2 | 1<<W3 | 1<<W5 | 1<<W14

// isLabelOnly tells whether this is a mistake of the plain design, in which the tenant label alone is ownership.
func (mistake Mistake) isLabelOnly() bool { return labelOnlyMistakes>>mistake&1 != 0 }

// WrongVariant is a scenario with one mistake, and the invariant by which it has to be found.
type WrongVariant struct {
	Scenario
	Violates string
}

func wrongVariants() []WrongVariant {
	variant := func(mistake Mistake, violates string, scenario Scenario) WrongVariant {
		scenario.Mistake = mistake
		return WrongVariant{scenario, violates}
	}
	readT1 := Script{{Kind: Read, Record: recordT, Holder: holder1}}
	return []WrongVariant{
		variant(W1, "I3", run("W1 undo own label whenever CAS->Bound fails", 1, claimT1, claimT2).
			with(noFaults)),
		variant(W2, "I2", run("W2 label only: two slots, one member", 1, claimT1, claims(recordT2, holder2)).
			with(noFaults, threeRecords)),
		variant(W3, "I3", run("W3 label only: slow releaser frees re-claimed", 1, releaseT1, releaseT2).
			with(noFaults)),
		variant(W4, "I4", run("W4 cleaner frees a BYO member", 1, releaseT1, once(EditMarkDirty), clean).
			with(noFaults, brought(tenantT))),
		variant(W5, "I4", run("W5 label only: sweep vs own-labelled (BYO)", 1, readT1, sweep).
			with(noFaults, brought(tenantT))),
		variant(W6, "I4", run("W6 policy release frees BYO member", 1, releaseT1).
			with(noFaults, brought(tenantT))),
		variant(W7, "I1", run("W7 sweep lists records before members", 1, claimT1, sweep).
			with(noFaults)),
		variant(W8, "I1", run("W8 dead token judged from a cached record", 1,
			releaseT1, reclaimT2, claims(recordT, holder4)).
			with(noFaults)),
		variant(W9, "I4", run("W9 orphan survives re-runs (no sweep)", 2, claimT1, claimT2, releaseU).
			with(crashesOnly, noOrphans)),
		variant(W10, "I8", run("W10 cleaner re-reads before freeing (K4)", 1, claimU, clean, clean).
			with(noFaults, dirty, takeOver)),
		variant(W11, "I8", run("W11 take-over of a cleaning without new creds", 1, claimU, clean, clean).
			with(noFaults, dirty, takeOver)),
		variant(W12, "I8", run("W12 cleaner takes dirty members in use", 1, claimT1, once(EditMarkDirty), clean).
			with(noFaults)),
		variant(W13, "I1", run("W13 free = no tenant label (operator strips)", 1,
			claimT1, claimU, once(EditStripLabel)).
			with(noFaults)),
		variant(W14, "I5", run("W14 label only: operator strips label", 1, claimT1, claimU, once(EditStripLabel)).
			with(noFaults)),
		variant(W15, "I6", run("W15 exhaustion without a second look at the record", 1, claimT1, claimT2).
			with(noFaults)),
		variant(W16, "I3", run("W16 late release hits a re-claim that wrote nothing", 1, reclaimT1).
			with(lateWrites, abandonedReleases)),
		variant(W17, "I9", run("W17 stripped label on a pending claim not healed", 1,
			claimT1, claimT2, once(EditStripLabel)).
			with(noFaults)),
		variant(W18, "I9", run("W18 shared: move to the same member", 1,
			claimT1, claimT2, claimsAndReleases(recordU, holder1), claims(recordV, holder4)).
			with(noFaults, shared(2))),
		variant(W19, "I3", run("W19 release ignores the sequence", 1, replaces(recordT, holder1)).
			with(noFaults)),
		variant(W20, "I3", run("W20 sequence starts over when a holder returns", 1,
			returns(recordT, holder1), claimT2).
			with(noFaults)),
		variant(W21, "I3", run("W21 sequence compared without the record's uid", 1, returns(recordT, holder1)).
			with(noFaults)),
		variant(W22, "I2", run("W22 claim begins beside others of other keys", 2, claimT1, claimT2, loseSettings).
			with(noFaults, displaced)),
		variant(W23, "I2", run("W23 keys change in an empty pool beside a claim", 2, claimT1, claimT2, loseSettings).
			with(noFaults, displaced)),
		variant(W24, "I1", run("W24 sweep frees a restored claim's member", 1, claimT1, restore, sweep).
			with(noFaults)),
		variant(W25, "I1", run("W25 claim frees a restored claim's member", 1,
			claimT1, claims(recordT2, holder2), restore).
			with(noFaults, threeRecords)),
		variant(W26, "I1", run("W26 member of a restored claim is given back", 1, claimT1, claimT2, restore).
			with(noFaults)),
		variant(W27, "I11", run("W27 quarantine forgets that the account was dirty", 1,
			once(EditMarkDirty), once(EditQuarantine), once(EditUnquarantine)).
			with(noFaults)),
		variant(W28, "I11", run("W28 account that was given up comes back", 1,
			once(EditDecommission), once(EditUnquarantine)).
			with(noFaults)),
		variant(W29, "I4", run("W29 retained member is its tenant's for ever", 1, releaseT1).
			with(noFaults, policy(PolicyRetain))),
		variant(W30, "I2", run("W30 spill: a holder who comes again gets another place", 2, againT1, claimT2).
			with(noFaults, spill(1))),
		variant(W31, "I5", run("W31 cleaner takes what a Bound record names", 1,
			claimT1, claimU, once(EditTakeTokenOff), clean).
			with(noFaults, policy(PolicyClean))),
		variant(W32, "I12", run("W32 quota counted before the write", 2, claimT1, claimU).
			with(noFaults, quota(1, holder1|holder3))),
		variant(W33, "I12", run("W33 a helper binds who has not entered", 2, claimT1, claimT2, claimU).
			with(noFaults, quota(1, holder1|holder3))),
		variant(W34, "I12", run("W34 an entry judged by an older list", 2, claimT1, reclaimU).
			with(noFaults, quota(1, holder1|holder3))),
		variant(W35, "I13", run("W35 a retained account is taken like a free one", 1, claimT1, sweepRecords).
			with(noFaults, retained, policy(PolicyRetain))),
		variant(W36, "I13", run("W36 a claim never bound decides over a retained account", 1, claimT1, sweepRecords).
			with(noFaults, retained, policy(PolicyClean))),
	}
}
