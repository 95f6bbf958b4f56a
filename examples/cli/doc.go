// Package cli has the command line that all examples share.
//
// # Example
//
// See the main.go of any example.
//
//	command := cli.Command{Name: "mill", Work: func(ctx context.Context, p *program.Program) error {
//		… // make informers and controllers of p, and run it
//	}}
//	command.Main()
//
// The flags of the connection have kubectl's names.
//
// # Promises
//
//  1. An error is one line that begins with the name of the program. The exit code is 2 for the command line, else 1.
//  2. Work gets the values of the flags. The end of its context is no failure.
//
// # Concurrency
//
// Run blocks until Work has returned.
package cli
