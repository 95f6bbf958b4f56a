// Package rig measures the memory that the caches of a controller program need. A program calls [Main] with its
// controllers, and everything else is the same for all of them: the server, the objects, the three caches, and the
// moment of the measurement.
package rig
