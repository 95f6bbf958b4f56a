package webhook

// CertificatesOf returns the certificate source of a server.
func CertificatesOf(s *Server) CertificateSource { return s.o.Certificates }
