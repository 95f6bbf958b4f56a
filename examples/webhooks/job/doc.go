// Package job defines a training job: its types, its defaults, its validation and its CustomResourceDefinition.
//
// # Example
//
//	j = j.DeepCopy() // SetDefaults must not change an object of a cache
//	job.SetDefaults(j)
//	err := job.Validate(j)
//
// # Promises
//
//  1. Validate returns all errors at once that only the user can correct.
//  2. SetDefaults sets missing fields and changes no others.
//  3. The definition declares every field of the types, so that a server drops none.
//
// # Concurrency
//
// SetDefaults changes its argument. Install blocks until the server has answered. The other functions are pure.
//
// The types are plain structs. They need no scheme and no generated code.
package job
