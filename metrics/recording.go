package metrics

// recordingTotals is the part of a recorder that metrics need. *recording.Recorder implements it. This package does not
// link recording.
type recordingTotals interface {
	// Totals returns the numbers of recording.Stats. It is called at every scrape.
	Totals() (streams, events, bytes, written, lost uint64)
}

type recordingState struct{ streams, events, bytes, written, lost uint64 }

// newRecordingTable returns families without a counterpart in client-go and controller-runtime.
func newRecordingTable(c *catalog) *table[recordingState] {
	t := newTable[recordingState](c, "recording")
	t.counter("leat_recording_streams_total", "Lists and watches that the recording contains.", func(s recordingState) float64 { return float64(s.streams) })
	t.counter("leat_recording_events_total", "Frames of watches that the recording contains.", func(s recordingState) float64 { return float64(s.events) })
	t.counter("leat_recording_received_bytes_total", "Bytes of the recorded answers.", func(s recordingState) float64 { return float64(s.bytes) })
	t.counter("leat_recording_written_bytes_total", "Bytes of the file.", func(s recordingState) float64 { return float64(s.written) })
	t.counter("leat_recording_lost_streams_total", "Lists and watches whose recording is not complete.", func(s recordingState) float64 { return float64(s.lost) })
	return t
}

// recording shows a recording under a name. The error is ErrNameTaken.
func (m *Metrics) recording(name string, r recordingTotals) (*CollectorRegistration, error) {
	state := func() (s recordingState) {
		s.streams, s.events, s.bytes, s.written, s.lost = r.Totals()
		return s
	}
	return m.add("recording", name, func() member { return &named[recordingState]{r, name, m.recordings, state} })
}
