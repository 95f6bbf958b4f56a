// Command client-go is client-go as a subject of the bench.
package main

import (
	"github.com/leatproject/leat/bench/engine/clientgo"
	"github.com/leatproject/leat/bench/subject"
)

func main() { subject.Main(clientgo.Library()) }
