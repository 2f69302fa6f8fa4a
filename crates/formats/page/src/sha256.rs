//! SHA-256 (FIPS 180-4) and its form in a content security policy. It hashes a page's own style and script, some kilobytes.

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2).
const ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// The same of the square roots of the first 8 primes (section 5.3.3).
const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// What a policy permits an inline style or script by: `'sha256-...'` (CSP level 3, section 6.7.2.3).
pub(crate) fn source(text: &str) -> String {
    format!("'sha256-{}'", base64(&digest(text.as_bytes())))
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    let mut state = START;
    for block in padded.chunks_exact(64) {
        compress(&mut state, block);
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// One block of 64 bytes (section 6.2.2).
fn compress(state: &mut [u32; 8], block: &[u8]) {
    let mut schedule = [0u32; 64];
    for (word, bytes) in schedule.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for t in 16..64 {
        let (a, b) = (schedule[t - 15], schedule[t - 2]);
        let small0 = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
        let small1 = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
        schedule[t] = schedule[t - 16].wrapping_add(small0).wrapping_add(schedule[t - 7]).wrapping_add(small1);
    }
    let mut v = *state;
    for (word, round) in schedule.iter().zip(ROUNDS) {
        let big1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
        let choice = v[4] & v[5] ^ !v[4] & v[6];
        let first = v[7].wrapping_add(big1).wrapping_add(choice).wrapping_add(round).wrapping_add(*word);
        let big0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
        let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2];
        v = [
            first.wrapping_add(big0).wrapping_add(majority),
            v[0],
            v[1],
            v[2],
            v[3].wrapping_add(first),
            v[4],
            v[5],
            v[6],
        ];
    }
    for (sum, word) in state.iter_mut().zip(v) {
        *sum = sum.wrapping_add(word);
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize] as char;
            text.push(if at <= group.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples that NIST publishes for FIPS 180-4, and what `openssl dgst -sha256 -binary | base64` prints.
    #[test]
    fn known_texts_have_their_known_hashes() {
        let hex = |text: &[u8]| digest(text).map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let two = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(two), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        assert_eq!(source(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
        assert_eq!((base64(b"f"), base64(b"fo"), base64(b"foo")), ("Zg==".into(), "Zm8=".into(), "Zm9v".into()));
    }
}
