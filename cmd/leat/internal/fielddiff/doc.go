// Package fielddiff compares objects field by field, for leat show. A line has the path of a field and both values;
// items of lists are compared by their names.
//
// # Promises
//
//  1. There is a line for each field that differs, except managedFields and the version.
//
// # Concurrency
//
// All functions are pure.
package fielddiff
