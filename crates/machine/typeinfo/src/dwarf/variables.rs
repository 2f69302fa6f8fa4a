//! Variables outside of functions (DWARF 5, 4.1).

use gimli::AttributeValue;

use super::Dwarf;
use super::units::{Entry, Unit};
use crate::error::TypeError;
use crate::model::{TypeRef, Variable};

/// Limit on nested C++ namespaces.
const MAX_NAMESPACES: usize = 16;
/// Limit on listed variables of one name: each unit of a large program may have one.
const MAX_VARIABLES: usize = 1024;
/// Limit on references from an entry to the one that holds its type.
const MAX_ORIGINS: usize = 8;
/// `DW_OP_addr`: the address follows.
const ADDRESS: u8 = 0x03;
/// `DW_OP_addrx` and GNU's name for it before DWARF 5: an index into `.debug_addr` follows.
const ADDRESS_INDEX: [u8; 2] = [0xa1, 0xfb];

/// A search for one name.
struct Search<'n, 's> {
    name: &'n str,
    found: Vec<Variable<'s>>,
    unit: Option<&'s str>,
    address_base: usize,
}

impl<'data> Dwarf<'data> {
    pub(super) fn decode_variables(&self, name: &str) -> Vec<Variable<'data>> {
        let last = name.rsplit("::").next().unwrap_or(name);
        let mut search = Search {
            name,
            found: Vec::new(),
            unit: None,
            address_base: 8,
        };
        if last.is_empty() || !self.sections.mention(last.as_bytes()) {
            return search.found;
        }
        for index in self.units_with(last.as_bytes()) {
            let unit = &self.units.all()[index];
            // A broken unit gives the variables before the damage.
            let Ok(id) = unit.root() else { continue };
            let Ok((_, root)) = self.units.entry(id) else {
                continue;
            };
            search.unit = root
                .attr_value(gimli::DW_AT_name)
                .and_then(|value| self.units.text(unit, &value));
            search.address_base = match root.attr_value(gimli::DW_AT_addr_base) {
                Some(AttributeValue::DebugAddrBase(base)) => base.0,
                // By default they follow the table's header, which has 8 bytes in the 32-bit
                // format.
                _ => 8,
            };
            let _ = self.variables_of(&mut search, id, "", MAX_NAMESPACES);
        }
        search.found
    }

    fn variables_of(
        &self,
        search: &mut Search<'_, 'data>,
        parent: u32,
        prefix: &str,
        depth: usize,
    ) -> Result<(), TypeError> {
        self.units.children(parent, &mut |unit, id, entry| {
            let text = |name| {
                entry
                    .attr_value(name)
                    .and_then(|value| self.units.text(unit, &value))
            };
            if entry.tag() == gimli::DW_TAG_namespace && depth > 0 {
                let inner = text(gimli::DW_AT_name)
                    .map_or_else(|| prefix.to_owned(), |own| format!("{prefix}{own}::"));
                let _ = self.variables_of(search, id, &inner, depth - 1);
            }
            if entry.tag() != gimli::DW_TAG_variable {
                return Ok(true);
            }
            // A variable without a location is a declaration, or was optimized away. One
            // declaration is enough.
            let is_defined = entry.has_attr(gimli::DW_AT_location);
            let is_declared =
                entry.attr_value(gimli::DW_AT_declaration) == Some(AttributeValue::Flag(true));
            if !is_defined && (!is_declared || search.found.iter().any(|it| !it.is_defined)) {
                return Ok(true);
            }
            let own = text(gimli::DW_AT_name);
            let own = if own.is_none() {
                self.name_of(id).ok().flatten()
            } else {
                own
            };
            let matches = own.is_some_and(|own| {
                own == search.name
                    || search
                        .name
                        .strip_prefix(prefix)
                        .is_some_and(|rest| rest == own)
            });
            if matches || text(gimli::DW_AT_linkage_name) == Some(search.name) {
                let ty = self.variable_type(unit, entry)?;
                let address = self.static_address(entry, search.address_base);
                search.found.push(Variable {
                    ty,
                    address,
                    unit: search.unit,
                    is_defined,
                });
            }
            Ok(search.found.len() < MAX_VARIABLES)
        })
    }

    /// Returns the type of a variable, from its declaration if the definition leaves it out.
    fn variable_type(
        &self,
        unit: &Unit<'data>,
        entry: &Entry<'data>,
    ) -> Result<TypeRef, TypeError> {
        let mut ty = self.type_of(unit, entry)?;
        let mut at = self.origin(unit, entry);
        for _ in 0..MAX_ORIGINS {
            let Some(origin) = at.filter(|_| ty.is_void()) else {
                break;
            };
            let (unit, entry) = self.units.entry(origin)?;
            ty = self.type_of(unit, &entry)?;
            at = self.origin(unit, &entry);
        }
        Ok(ty)
    }

    /// Returns the address if the expression is nothing but an address (DWARF 5, 2.5.1.1).
    fn static_address(&self, entry: &Entry<'data>, base: usize) -> Option<u64> {
        let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location)
        else {
            return None;
        };
        let (operation, operand) = expression.0.slice().split_first()?;
        if *operation == ADDRESS {
            return Some(u64::from_le_bytes(operand.try_into().ok()?));
        }
        if !ADDRESS_INDEX.contains(operation) {
            return None;
        }
        let mut index = 0_usize;
        for (place, byte) in operand.iter().enumerate().take(5) {
            index |= usize::from(byte & 0x7f) << (7 * place);
        }
        let at = base.checked_add(index.checked_mul(8)?)?;
        let bytes = self.sections.addresses.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}
