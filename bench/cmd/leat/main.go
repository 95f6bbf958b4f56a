// Command leat is leat as a subject of the bench.
package main

import (
	"github.com/leatproject/leat/bench/engine/leat"
	"github.com/leatproject/leat/bench/subject"
)

func main() { subject.Main(leat.Library()) }
