// Package load generates the pods for all measurements. It uses neither leat nor its peers.
//
// The same seed gives the same pods, byte for byte. A pod has 5 to 9 KB of JSON, of which 25 to 40 % are managedFields.
// Replicas of a workload share labels, images and variables, and share no name, UID or address. Append writes the same
// bytes as apimachinery, in JSON and protobuf, whole and metadata only. It copies and does not allocate, so that the
// client is measured and not the generator.
//
// # Concurrency
//
// A Set is immutable. It may be used on any goroutine.
package load
