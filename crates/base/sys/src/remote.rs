//! The memory of other processes, read without stopping them (process_vm_readv(2)).

use std::io::{self, IoSliceMut};

/// Maximum number of ranges per call (`UIO_MAXIOV` of `linux/uio.h`).
pub const MAX_RANGES: usize = 1024;

/// Reads ranges of a process's memory with one system call: from each address, as many bytes as the
/// slice at its index has.
///
/// Returns the number of bytes read, in the order of the ranges. It is smaller than the total if a
/// range could not be read: the kernel stops there. `EFAULT`: not even the first. `EPERM`: not
/// permitted (`PTRACE_MODE_ATTACH_REALCREDS` of ptrace(2)). `ESRCH`: there is no such thread, or it
/// has no memory (any more). `pid` may be the id of any thread.
pub fn read_ranges(pid: u32, addresses: &[u64], into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    if addresses.len() != into.len() || addresses.len() > MAX_RANGES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let from = |(address, slice): (&u64, &IoSliceMut<'_>)| libc::iovec {
        // The kernel uses this number in the other process's memory: nothing of ours is there.
        iov_base: std::ptr::without_provenance_mut(*address as usize),
        iov_len: slice.len(),
    };
    let remote: Vec<libc::iovec> = addresses.iter().zip(into.iter()).map(from).collect();
    let count = into.len() as libc::c_ulong;
    // SAFETY: `IoSliceMut` has the layout of `iovec`, and its slices are ours to write until the call returns. The kernel
    // reads `count` entries of both lists, and never dereferences the addresses of the second one here.
    let read = unsafe {
        libc::process_vm_readv(
            pid.cast_signed(),
            into.as_mut_ptr().cast(),
            count,
            remote.as_ptr(),
            count,
            0,
        )
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_read_up_to_what_is_not_mapped() {
        let (first, second) = ([1_u8, 2, 3], [4_u8, 5]);
        let (mut a, mut b, mut c) = ([0; 2], [0; 4], [0; 2]);
        let mut into = [
            IoSliceMut::new(&mut a),
            IoSliceMut::new(&mut b),
            IoSliceMut::new(&mut c),
        ];
        let addresses = [first.as_ptr() as u64 + 1, 8, second.as_ptr() as u64];
        assert_eq!(
            read_ranges(std::process::id(), &addresses, &mut into).unwrap(),
            2
        );
        assert_eq!(a, [2, 3]);
        let mut into = [IoSliceMut::new(&mut c)];
        assert_eq!(
            read_ranges(std::process::id(), &addresses[2..], &mut into).unwrap(),
            2
        );
        assert_eq!(c, second);
        let error = read_ranges(
            std::process::id(),
            &[u64::MAX],
            &mut [IoSliceMut::new(&mut [0])],
        )
        .unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        assert!(read_ranges(1, &[0], &mut []).is_err());
    }
}
