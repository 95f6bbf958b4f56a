// Package job says what a training job is: its types, its defaults, what makes it invalid, and the
// CustomResourceDefinition by which a server knows it.
//
// # Place in the pipeline
//
// Before it: what is read and written.
//
// # Guarantees
//
//  1. What only the user can mend is found, all of it at once (TestValidate).
//  2. Defaults fill in what is open and nothing else (TestDefaults).
//  3. The definition declares every field that the types have, so that no server drops one (TestDefinitionDeclaresEveryField).
//
// # Concurrency
//
// SetDefaults changes the job that it is given, which belongs to the caller: never pass one from a cache. Install blocks for
// the server's answer. The rest is pure.
//
// # Differences from client-go
//
// The types are plain structs: there is no scheme that they have to be registered with, and no generated code.
package job
