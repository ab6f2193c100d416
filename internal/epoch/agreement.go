package epoch

// Agreement is what domains together hold: nothing that is known, one epoch, or several. It is a
// flat lattice, unknown < e < mixed: two different epochs are joined by mixed alone.
type Agreement struct {
	epoch int64
	level level
}

type level uint8

const (
	nothing level = iota
	one
	several
)

// Holds is the agreement of a domain that holds an epoch.
func Holds(epoch int64) Agreement { return Agreement{epoch, one} }

// Join returns the least agreement that is not below a nor b.
func (a Agreement) Join(b Agreement) Agreement {
	switch {
	case a.level == nothing:
		return b
	case b.level == nothing, a == b:
		return a
	}
	return Agreement{level: several}
}

// Mixed reports whether different epochs are held.
func (a Agreement) Mixed() bool { return a.level == several }

// agreement joins what is held with the name of the save, which is one domain more: where all
// hold one epoch and the save is called another, that is mixed, too.
func (j *Judgement) agreement(save int64) Agreement {
	if len(j.Held) == 0 {
		return Agreement{}
	}
	a := Holds(save)
	for i := range j.Held {
		a = a.Join(Holds(j.Held[i].Epoch))
	}
	return a
}
