// Package codec turns the bytes that a Kubernetes API server sends into objects of one Go type, and objects into bytes.
//
// # Place in the pipeline
//
// Between the wire and everything else: apiclient reads answers through it, and testserver writes and reads them. It
// knows JSON and Kubernetes' protobuf, and does no I/O but on the readers that it is given.
package codec
