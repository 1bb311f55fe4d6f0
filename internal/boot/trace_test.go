package boot

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure only a peer in one of the networks is trusted, also where IPv6 sockets show IPv4 addresses, and by default no peer is.
func TestTrustedPeers(t *testing.T) {
	t.Parallel()
	networks := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for peer, want := range map[string]bool{
		"10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true, "[fd00::1]:80": true, "[fd00::1%eth0]:80": false,
		"10.2.0.1:80": false, "[::1]:80": false, "10.1.2.3": false, "": false, "@": false,
	} {
		require.Equal(t, want, trusted(networks, peer), peer)
		require.False(t, trusted(nil, peer), peer)
	}
}
