// Leat-fields lists the fields of Kubernetes' API objects that a program reads. An informer needs to keep only these in
// its cache.
//
//	leat-fields ./...                          # print the fields, with the first position that reads each
//	leat-fields -o fields_generated.go ./...   # write a Go file with one variable for each type
//	leat-fields -check fields_generated.go ./... # fail if the program reads a field that the file lacks
//
// A path has the names that the fields have in JSON, joined by dots. Pointers and lists do not show:
// spec.containers.image is the image of every container. metadata.labels["app"] is one key of a map, and m[*].x is the
// field x of each of its values. A path keeps everything below it. The fields that identify an object, and those of its
// life cycle, are always kept, so they are not listed.
//
// The analysis starts where objects come from: results of functions that it does not follow, parameters of handlers,
// type assertions, and what is loaded from variables, lists and maps. It follows values through the functions of the
// program and of helper libraries, without regard to the order of statements. Where it loses a value it assumes that
// all of it is read, and reports an escape: a log call with an object is one. A comment in the line, or in the line
// before, answers an escape with the paths that this call reads:
//
//	//leat:fields spec.nodeName,status.phase
//	log.Info("scheduled", "pod", pod)
//
// Functions that write whole objects, as Update does, are listed because they would remove what a mask leaves out. The
// generated file names them, and -check fails for one that it does not name.
//
// The exit code is 1 if a file lacks a field, 3 if it lacks a write only, and 2 if the program can't be analysed.
//
// Some reads are not seen: those of objects of type Unstructured and of structs that do not embed TypeMeta and
// ObjectMeta, those by assembly, linkname or plugins, and those of a program's tests. A comment also answers for the
// results of its call. A value that is stored in its own place of another object of the type is not counted as read.
// The program is what the patterns match. The other packages come as the compiler left them, so the first run with a
// cold build cache compiles them.
package main
