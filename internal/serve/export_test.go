package serve

// OnlyLoopback is for tests.
var OnlyLoopback = onlyLoopback
