package shard

import "github.com/leatproject/leat/api/hashrange"

// Seats is seats, for members with their published seats.
func Seats(published map[string]int) map[string]int {
	var members []seated
	for name, seat := range published {
		members = append(members, seated{name, seat})
	}
	return seats(members)
}

// Cut is cut.
func Cut(n int) []hashrange.Set { return cut(n) }

// StopTimer stops the timer that ends the contexts of work at the deadline.
func (m *Member) StopTimer() { m.timer.Stop() }
