// Package program is what the examples have in common as programs, and none of them is about: a command line, a client, a
// manager, an election, and what Prometheus is shown.
//
// # Place in the pipeline
//
// Around all of it. An example is a Command, whose Work gets a Program with everything that the flags ask for, and builds
// its caches and controllers in that.
//
// # Guarantees
//
//  1. What is wrong is said in one line, which begins with the name of the program: with exit code 2 where it is the command
//     line, and 1 otherwise (TestWhatIsWrong).
//  2. Work gets what the flags say, and the end of its context is no failure (TestWorkGetsWhatTheFlagsSay).
//
// # Concurrency
//
// Run blocks until Work has returned. A Program is for the goroutine that builds from it.
//
// # Differences from client-go
//
// Flags of the connection have the names that kubectl's have.
//
// # Example
//
// See the main.go of any example.
package program
