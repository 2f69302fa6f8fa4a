//! Maps: memory that BPF programs and user space share.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use uapi::bpf::{MapKind, NOEXIST};
use zerocopy::{Immutable, IntoBytes, KnownLayout};

use super::{Command, address, call, make, object_name};
use crate::cpus;

/// Parameters for creating a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapSpec<'name> {
    /// Name, of which the kernel keeps 15 bytes.
    pub name: &'name str,
    /// Kind of the map.
    pub kind: MapKind,
    /// Size of a key, in bytes.
    pub key_size: u32,
    /// Size of a value, in bytes; for per-CPU maps, of one CPU's value.
    pub value_size: u32,
    /// Maximum number of entries; for a ring buffer its size in bytes.
    pub max_entries: u32,
    /// `BPF_F_*` flags.
    pub flags: u32,
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct CreateAttr {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

#[derive(IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ElementAttr {
    map_fd: u32,
    padding: u32,
    key: u64,
    /// Address of the value, or for [`Command::MapNextKey`] of the next key.
    value: u64,
    flags: u64,
}

/// A map. It lives until this and every program that uses it are gone.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    kind: MapKind,
    key_size: usize,
    /// Number of bytes that a lookup writes: one value, or one for each possible CPU.
    lookup_size: usize,
    value_size: usize,
    max_entries: u32,
}

impl Map {
    /// Creates a map.
    pub fn create(spec: &MapSpec<'_>) -> io::Result<Self> {
        let mut attr = CreateAttr {
            map_type: spec.kind as u32,
            key_size: spec.key_size,
            value_size: spec.value_size,
            max_entries: spec.max_entries,
            map_flags: spec.flags,
            inner_map_fd: 0,
            numa_node: 0,
            map_name: object_name(spec.name),
        };
        // SAFETY: this form has no pointers.
        let fd = unsafe { make(Command::MapCreate, &mut attr) }?;
        let value_size = spec.value_size as usize;
        // The kernel rounds each CPU's value up to 8 bytes (bpf_map_value_size in kernel/bpf/syscall.c).
        let lookup_size = if spec.kind.is_per_cpu() {
            value_size.next_multiple_of(8) * cpus::possible()?
        } else {
            value_size
        };
        let (kind, key_size, max_entries) = (spec.kind, spec.key_size as usize, spec.max_entries);
        Ok(Self {
            fd,
            kind,
            key_size,
            lookup_size,
            value_size,
            max_entries,
        })
    }

    /// Returns the size of a key, in bytes.
    pub fn key_size(&self) -> usize {
        self.key_size
    }

    /// Returns the size of a value, in bytes; for per-CPU maps, of one CPU's value.
    pub fn value_size(&self) -> usize {
        self.value_size
    }

    /// Returns the maximum number of entries; for a ring buffer its size in bytes.
    pub fn max_entries(&self) -> u32 {
        self.max_entries
    }

    /// Returns the kind of the map.
    pub fn kind(&self) -> MapKind {
        self.kind
    }

    /// Returns the distance between two CPUs' values in the result of [`Map::lookup`], in bytes;
    /// `None` for a map with one value per key.
    pub fn cpu_stride(&self) -> Option<usize> {
        self.kind
            .is_per_cpu()
            .then(|| self.value_size.next_multiple_of(8))
    }

    /// Returns the value of a key, or the values of all possible CPUs one after the other; `None`
    /// if the key is absent.
    pub fn lookup(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0; self.lookup_size];
        let mut attr = self.element(Some(key), value.as_mut_ptr().cast_const(), 0)?;
        // SAFETY: the key has the map's size (checked by `element`), and the value has the size
        // that the kernel writes.
        absent(unsafe { call(Command::MapLookup, &mut attr) }).map(|found| found.map(|_| value))
    }

    /// Sets the value of a key. A per-CPU map needs the values of all CPUs, in the form that
    /// [`Map::lookup`] returns.
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.put(key, value, 0)
    }

    /// Sets the value of an absent key, like [`Map::update`]. Returns false, and changes nothing,
    /// if the key is present.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> io::Result<bool> {
        match self.put(key, value, u64::from(NOEXIST)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            done => done.map(|()| true),
        }
    }

    fn put(&self, key: &[u8], value: &[u8], flags: u64) -> io::Result<()> {
        if value.len() != self.lookup_size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut attr = self.element(Some(key), value.as_ptr(), flags)?;
        // SAFETY: the key and the value have the map's sizes.
        unsafe { call(Command::MapUpdate, &mut attr) }.map(drop)
    }

    /// Removes a key; returns whether it was present.
    pub fn delete(&self, key: &[u8]) -> io::Result<bool> {
        let mut attr = self.element(Some(key), std::ptr::null(), 0)?;
        // SAFETY: the key has the map's size, and this form has no value.
        absent(unsafe { call(Command::MapDelete, &mut attr) }).map(|found| found.is_some())
    }

    /// Returns all keys, in the map's own order. If the map changes meanwhile, some keys may be
    /// missing or repeated.
    pub fn keys(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        // A walk restarts when its last key was deleted: a busy map must not make it endless.
        while keys.len() <= self.max_entries as usize {
            let mut next = vec![0; self.key_size];
            let last = keys.last().map(Vec::as_slice);
            let mut attr = self.element(last, next.as_mut_ptr().cast_const(), 0)?;
            // SAFETY: both keys have the map's size.
            match absent(unsafe { call(Command::MapNextKey, &mut attr) })? {
                Some(_) => keys.push(next),
                None => break,
            }
        }
        Ok(keys)
    }

    fn element(&self, key: Option<&[u8]>, value: *const u8, flags: u64) -> io::Result<ElementAttr> {
        if key.is_some_and(|key| key.len() != self.key_size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let key = key.map_or(0, |key| address(key));
        Ok(ElementAttr {
            map_fd: self.fd.as_raw_fd() as u32,
            padding: 0,
            key,
            value: address(value),
            flags,
        })
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Turns the error "no such key" into `None`.
fn absent(done: io::Result<i32>) -> io::Result<Option<i32>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}
