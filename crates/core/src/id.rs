//! Unique names.

/// `prefix` and 96 random bits, in lower-case hexadecimal.
pub(crate) fn random_id(prefix: &str) -> String {
    let mut bytes = [0; 12];
    fill(&mut bytes);
    format!("{prefix}{}", hex(&bytes))
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

pub(crate) fn random_u128() -> u128 {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    u128::from_le_bytes(bytes)
}

fn fill(bytes: &mut [u8]) {
    // Fails only if the system has no source of randomness; then time is the best fallback.
    if getrandom::fill(bytes).is_err() {
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let pid = u128::from(std::process::id()) << 64;
        let seed = (nanos ^ pid).to_le_bytes();
        bytes.iter_mut().zip(seed).for_each(|(byte, seed)| *byte = seed);
    }
}
