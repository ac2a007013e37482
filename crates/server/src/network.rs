//! Ranges of addresses.

use std::{net::IpAddr, str::FromStr};

/// A range of IP addresses, such as `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    bits: u32,
}

impl AddressRange {
    /// Whether `address` is in the range. An IPv4 address that is written as IPv6 counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differs = first.to_bits() ^ address.to_bits();
                self.bits == 0 || differs.checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differs = first.to_bits() ^ address.to_bits();
                self.bits == 0 || differs.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong =
            || format!("{text:?} is not an IP address such as 10.0.0.7, nor a range such as 10.0.0.0/8");
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
        };
        Ok(Self { first, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_the_addresses_with_its_first_bits() {
        let contains = |range: &str, address: &str| {
            range.parse::<AddressRange>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.7", "10.0.0.7") && !contains("10.0.0.7", "10.0.0.8"));
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("10.0.0.0/8", "::ffff:10.0.0.1"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "fe80::1"));
        assert!(contains("0.0.0.0/0", "192.0.2.1") && !contains("0.0.0.0/0", "::1"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "proxy", "10.0.0.0/33", "10.0.0.0/x", "::1/129", "10.0.0.0/8/8"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}
