// Mutate asks whether the tests of a package notice a change to its code. It makes small changes, called mutants,
// runs the package's tests on each of them, and prints the mutants that survive: those that no test fails with. Run
// it with make mutate.
//
// # How it works
//
// Mutate compiles a package once, with all its mutants in it. Each mutated expression or statement asks whether its
// mutant is the one that the environment variable MUTATE names. So a mutant costs a run of the tests, and neither a
// compilation nor a link. The price is one comparison with a variable wherever there is a mutant. The files of the
// tree do not change: the go command gets the mutated files as an overlay.
//
// # Mutations
//
// A condition is always true or always false, an operand of && or || is dropped, a comparison with < or > includes
// or excludes equality, == is negated, + and - are swapped, min and max are swapped, an integer is one higher, true
// and false are swapped, an error is not returned, or a statement is removed. Log messages, locks and defer
// statements stay.
//
// # Survivors
//
// survivors.txt lists the mutants that may survive, with a reason for each. Mutate fails if another mutant survives,
// and if an entry names no mutant. It prints the entries whose mutant was killed: tests that depend on the scheduler
// kill some mutants in some runs only.
package main
