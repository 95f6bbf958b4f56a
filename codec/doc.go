// Package codec turns the bytes that a Kubernetes API server sends into objects of one Go type, and objects into bytes.
//
// # Place in the pipeline
//
// Between the wire and everything else: apiclient reads answers through it, and testserver reads and writes them. It
// knows JSON and Kubernetes' protobuf, and does no I/O but on the readers that it is given.
//
// An answer passes three layers: a window (window.go) holds the part of the stream that is at hand; the scanner
// (scanner.go), or for protobuf the lengths on the wire, finds where one object ends, checks its syntax and notes where
// each token stands (outline.go); the plan (plan.go), compiled from T once, makes a T of what was noted: jsonplan.go and
// its neighbours of JSON, wireplan.go of protobuf. What T does not declare is stepped over without being looked at again.
// Between the last two, what can be said from the metadata alone is said (peek.go): that the caller holds this very
// version already, or whose bytes these are that cannot be decoded. Strings that repeat are shared (interner.go,
// recent.go).
//
// # Guarantees
//
//  1. What sigs.k8s.io/json accepts is accepted, with the same result, and what it refuses is refused: into the types of
//     k8s.io/api (TestDecodesLikeReference, TestRefusesLikeReference, TestRepeatsLikeReference), into structs of users
//     (TestStructsLikeReference, TestGeneratedStructsLikeReference, TestKnownTypesLikeReference), and into unstructured
//     objects (TestUnstructuredLikeReference).
//  2. Every byte of JSON is checked, skipped ones too (TestScansLikeReference, TestSkippedValuesAreScanned).
//  3. An object is handed out when its last byte has arrived (TestListHandsOutItemsAsTheyArrive,
//     TestEventIsHandedOutWhenComplete).
//  4. Of a stream no more is held than one object and where its tokens stand, wherever a list's metadata stands (TestListMetadataMayComeLast,
//     TestListWithoutEndNeedsNoMemory), and that one has a bound (TestObjectTooLarge). No length that is only claimed
//     allocates anything (TestMalformedAnswers).
//  5. A malformed answer is a typed error; nothing panics, and the next answer is read as if nothing had been
//     (TestMalformedAnswers, TestNestingIsBounded, and the fuzz targets).
//  6. An object that cannot be decoded costs only itself, and is named (TestListReportsUndecodable,
//     TestProtobufListReportsUndecodable, TestEventReportsUndecodable).
//  7. An object whose UID and version the caller knows is not decoded and costs no allocation
//     (TestKnownObjectsAreReused, TestRelistOfKnownObjectsDoesNotAllocate); one of which either is empty is never taken
//     for known (TestUncertainObjectsAreNotReused).
//  8. managedFields that are not wanted are left out, however T keeps its metadata (TestDropsManagedFields,
//     TestDropsManagedFieldsAnywhere, TestDropsManagedFieldsOfEveryType, TestDropsManagedFieldsFromProtobuf).
//  9. Objects share no memory with the stream (TestProtobufDoesNotAliasBuffer), and Marshal changes no object
//     (TestMarshalFillsInKind).
//  10. An ERROR frame ends a watch with a StatusError whatever it holds (TestErrorEvent, TestOddErrorEvent).
//  11. What Marshal writes is what apimachinery's serializers read (TestProtobufLikeReference).
//  12. A struct of which every field has its number in a protobuf tag is read from protobuf, with the same result as from
//     JSON, and for the types of k8s.io/api as by their own Unmarshal (TestProjectionFromProtobuf,
//     TestWirePlanLikeUnmarshal); one that lacks a number is read from JSON alone (TestWhatIsReadFromProtobuf).
//  13. Objects share the strings that repeat (TestRepeatingStringsAreShared); of those that do not none is kept
//     (TestInternerKeepsOnlyWhatRepeats, TestWhatStandsOnceIsNotHeldLately), and however many repeat no more than 4096 of up
//     to 256 bytes (TestInternerIsBounded), those that repeat most first (TestInternerKeepsWhatRepeatsMost). None is taken
//     for another (TestAlikeStringsAreToldApart).
//  14. A slice that was decoded from protobuf, as encoders write it, has no room left: whoever appends to it gets a copy
//     (TestSlicesHaveNoRoomLeft).
//
// # Concurrency
//
// A Codec is immutable but for the strings that its objects share, which are looked up without a lock, and is safe for
// concurrent use (TestCodecIsSafeForConcurrentUse, TestAnswersAreReadSideBySide). Everything that is made for one answer belongs to one goroutine: the callbacks of api.Options and each run on the
// goroutine that reads. Reading blocks as the reader blocks, and ends by closing that; nothing here starts a goroutine.
//
// # Differences from client-go
//
// There a response is read whole, then a list is made whole, then its items are copied out of it; here items stream. A
// decoder is compiled for a Go type and knows no scheme. A struct that looks generated, with nothing hidden in it and a
// number to every field, is decoded by those numbers and not by its Unmarshal. Typed objects keep their apiVersion and kind, also in a list,
// where a server leaves them out and client-go clears them: an object is equal to itself however it came. Metadata says
// which kind it is the metadata of, and not "PartialObjectMetadata".
//
// # Example
//
// See ExampleCodec_DecodeList, ExampleCodec_NewEventReader and ExampleMarshal in example_test.go.
package codec
