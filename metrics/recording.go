package metrics

import "github.com/prometheus/client_golang/prometheus"

// recordingTotals is the part of a recorder that metrics need. *recording.Recorder implements it. This package does not
// link recording.
type recordingTotals interface {
	// Totals returns the numbers of recording.Stats. It is called at every scrape.
	Totals() (streams, events, bytes, written, lost uint64)
}

// recordingFamilies have no counterpart in client-go and controller-runtime.
type recordingFamilies struct{ streams, events, bytes, written, lost family }

func newRecordingFamilies(c *catalog) recordingFamilies {
	return recordingFamilies{
		streams: c.counter("leat_recording_streams_total", "Lists and watches that the recording contains.", "recording"),
		events:  c.counter("leat_recording_events_total", "Frames of watches that the recording contains.", "recording"),
		bytes:   c.counter("leat_recording_received_bytes_total", "Bytes of the recorded answers.", "recording"),
		written: c.counter("leat_recording_written_bytes_total", "Bytes of the file.", "recording"),
		lost:    c.counter("leat_recording_lost_streams_total", "Lists and watches whose recording is not complete.", "recording"),
	}
}

// recording shows a recording under a name. The error is ErrNameTaken.
func (m *Metrics) recording(name string, r recordingTotals) (*CollectorRegistration, error) {
	return m.add("recording", name, func() member { return &shownRecording{m, name, r} })
}

// shownRecording collects the series of a recording.
type shownRecording struct {
	m    *Metrics
	name string
	r    recordingTotals
}

func (s *shownRecording) subject() any { return s.r }

func (s *shownRecording) leave() {}

func (s *shownRecording) collect(to chan<- prometheus.Metric) {
	f := &s.m.recordings
	streams, events, bytes, written, lost := s.r.Totals()
	f.streams.send(to, float64(streams), s.name)
	f.events.send(to, float64(events), s.name)
	f.bytes.send(to, float64(bytes), s.name)
	f.written.send(to, float64(written), s.name)
	f.lost.send(to, float64(lost), s.name)
}
