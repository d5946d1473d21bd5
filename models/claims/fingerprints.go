package main

// fingerprintTable numbers fingerprints in the order in which they are met: open addressing, nothing removed.
type fingerprintTable struct {
	keys  []fingerprint // the zero one is an empty place
	ids   []uint32
	count int
}

func newFingerprintTable() *fingerprintTable {
	const places = 1 << 16
	return &fingerprintTable{keys: make([]fingerprint, places), ids: make([]uint32, places)}
}

// number gives the number of a known fingerprint, or gives it the next one.
func (table *fingerprintTable) number(key fingerprint) (id uint32, isNew bool) {
	if table.count*10 > len(table.keys)*7 {
		table.grow()
	}
	place := table.place(key)
	if table.keys[place] == key {
		return table.ids[place], false
	}
	id = uint32(table.count)
	table.keys[place], table.ids[place] = key, id
	table.count++
	return id, true
}

// place finds where a fingerprint is, or the empty place where it belongs.
func (table *fingerprintTable) place(key fingerprint) uint64 {
	mask := uint64(len(table.keys) - 1)
	place := key[0] & mask
	for table.keys[place] != key && table.keys[place] != (fingerprint{}) {
		place = (place + 1) & mask
	}
	return place
}

func (table *fingerprintTable) grow() {
	larger := fingerprintTable{
		keys: make([]fingerprint, 2*len(table.keys)), ids: make([]uint32, 2*len(table.ids)), count: table.count,
	}
	for place, key := range table.keys {
		if key != (fingerprint{}) {
			to := larger.place(key)
			larger.keys[to], larger.ids[to] = key, table.ids[place]
		}
	}
	*table = larger
}
