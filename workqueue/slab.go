package workqueue

// chunkLength is the number of entries that are allocated together.
const chunkLength = 64

// slab stores the entries of a queue. It allocates, reuses and releases them in chunks; see Queue.trim. References
// between entries are ids, so a backlog of a million keys is a few thousand objects for the garbage collector, and few
// pointers.
type slab[K comparable] struct {
	chunks []*chunk[K] // nil for a chunk that was released
	gaps   []int       // indexes of the released chunks
	open   *chunk[K]   // chunks that have a free entry
	room   int         // number of entries in all chunks
	used   int         // number of entries that are not free
	peak   int         // largest value of used since the last trim
}

type chunk[K comparable] struct {
	entries    [chunkLength]entry[K]
	causes     *[chunkLength]causeList // one for each entry; nil until an entry needs its list
	index      int                     // in slab.chunks
	free       id                      // linked by age
	used       int
	prev, next *chunk[K] // in the list of open chunks
}

// at returns the entry of an id, which must not be zero.
func (s *slab[K]) at(i id) *entry[K] {
	return &s.chunks[(i-1)/chunkLength].entries[(i-1)%chunkLength]
}

// chunkOf returns the chunk of an entry.
func (s *slab[K]) chunkOf(e *entry[K]) *chunk[K] { return s.chunks[(e.id-1)/chunkLength] }

// take returns a free entry.
func (s *slab[K]) take() *entry[K] {
	if s.open == nil {
		s.grow()
	}
	c := s.open
	e := &c.entries[(c.free-1)%chunkLength]
	c.free, e.links[byAge].next = e.links[byAge].next, 0
	c.used++
	if c.free == 0 {
		s.shut(c)
	}
	s.used++
	s.peak = max(s.peak, s.used)
	return e
}

// put frees an entry. It clears only the key; the caller has cleared every other field that is read before it is set.
func (s *slab[K]) put(e *entry[K]) {
	var none K
	e.key = none
	c := s.chunkOf(e)
	if c.free == 0 {
		s.reopen(c)
	}
	c.free, e.links[byAge].next = e.id, c.free
	c.used--
	s.used--
}

// trim releases free chunks, but keeps room for the given number of entries.
func (s *slab[K]) trim(room int) {
	s.gaps = nil
	for i, c := range s.chunks {
		if c != nil && c.used == 0 && s.room-chunkLength >= room {
			s.shut(c)
			s.room -= chunkLength
			s.chunks[i] = nil
		}
		if s.chunks[i] == nil {
			s.gaps = append(s.gaps, i)
		}
	}
}

// grow adds a chunk.
func (s *slab[K]) grow() {
	c := &chunk[K]{index: len(s.chunks)}
	if n := len(s.gaps); n > 0 {
		c.index, s.gaps = s.gaps[n-1], s.gaps[:n-1]
		s.chunks[c.index] = c
	} else {
		s.chunks = append(s.chunks, c)
	}
	for i := range c.entries {
		e := &c.entries[chunkLength-1-i] // so that the first entry is taken first
		e.id = id(c.index*chunkLength + chunkLength - i)
		c.free, e.links[byAge].next = e.id, c.free
	}
	s.room += chunkLength
	s.reopen(c)
}

func (s *slab[K]) reopen(c *chunk[K]) {
	c.next = s.open
	if s.open != nil {
		s.open.prev = c
	}
	s.open = c
}

func (s *slab[K]) shut(c *chunk[K]) {
	if c.prev == nil {
		s.open = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
}

// note keeps a cause of a pending add.
func (s *slab[K]) note(e *entry[K], cause *Cause, limit int) {
	if e.causes == nil {
		e.causes = s.causeList(e)
	}
	e.causes.add(cause, limit)
}

// causeList returns an empty list for the pending causes of an entry: the list of its place in the chunk, or a new one
// if the worker still reads that list.
func (s *slab[K]) causeList(e *entry[K]) *causeList {
	if e.held != nil {
		return &causeList{}
	}
	c := s.chunkOf(e)
	if c.causes == nil {
		c.causes = new([chunkLength]causeList)
	}
	return &c.causes[(e.id-1)%chunkLength]
}

// list is a FIFO whose links are in the entries. Removing from the middle is cheap, and no array keeps removed entries
// alive. The owner of a list counts its length if it needs it.
type list struct{ head, tail id }

func (s *slab[K]) push(l *list, e *entry[K], by int) {
	e.links[by].prev = l.tail
	if l.tail == 0 {
		l.head = e.id
	} else {
		s.at(l.tail).links[by].next = e.id
	}
	l.tail = e.id
}

func (s *slab[K]) remove(l *list, e *entry[K], by int) {
	at := e.links[by]
	if at.prev == 0 {
		l.head = at.next
	} else {
		s.at(at.prev).links[by].next = at.next
	}
	if at.next == 0 {
		l.tail = at.prev
	} else {
		s.at(at.next).links[by].prev = at.prev
	}
	e.links[by] = link{}
}
