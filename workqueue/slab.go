package workqueue

// chunkLength is the number of entries that are allocated together.
const chunkLength = 64

// slab is where the entries of a queue live. They are allocated by the chunk, used again, and given back by the chunk;
// see Queue.trim. What refers to an entry from within the queue is its id, so that a backlog of a million
// keys is some thousand objects to the garbage collector, and few pointers.
type slab[K comparable] struct {
	chunks []*chunk[K] // nil where one was given back
	gaps   []int       // the indexes of these
	open   *chunk[K]   // the chunks that have a free entry
	room   int         // entries in all chunks
	used   int         // those of them that are not free
	peak   int         // the most that were used since the last trim
}

type chunk[K comparable] struct {
	entries    [chunkLength]entry[K]
	causes     *[chunkLength]causeList // one for each entry; nil until one of them needs it
	index      int                     // in slab.chunks
	free       id                      // linked by age
	used       int
	prev, next *chunk[K] // among the open ones
}

// at returns the entry of an id, which must not be zero.
func (s *slab[K]) at(i id) *entry[K] {
	return &s.chunks[(i-1)/chunkLength].entries[(i-1)%chunkLength]
}

// chunkOf returns the chunk of an entry.
func (s *slab[K]) chunkOf(e *entry[K]) *chunk[K] { return s.chunks[(e.id-1)/chunkLength] }

// take returns an entry that is free.
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

// put frees an entry of which all but the key is either zero or set before it is read.
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

// trim gives chunks back that are free, but for room for so many entries.
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
		e := &c.entries[chunkLength-1-i] // so that the first is taken first
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

// causeList returns a list for an entry that has none for what is pending: that of its place, or a second one.
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

// list is a FIFO through the entries themselves: taking one out of the middle costs nothing, and no array behind it
// holds what has left. Its length is kept by whoever needs it.
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
