//! Effects of clicks and the wheel of the mouse, while the mouse is not the terminal's.

use crate::keys::Key;
use crate::model::{Effect, Model, Overlay, Tab};
use crate::table::Row;

/// Positions of what was drawn and can be clicked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Columns of the tabs, in line 1.
    pub(crate) tabs: Vec<(std::ops::Range<u16>, Tab)>,
    /// Lines of the table's rows.
    pub(crate) rows: std::ops::Range<u16>,
    /// Columns of the table's headlines, in the line above the rows, with their indices.
    pub(crate) heads: Vec<(std::ops::Range<u16>, usize)>,
}

/// Rows that one step of the wheel moves.
const WHEEL: usize = 3;

impl Model {
    /// Takes the mouse, or gives it back to the terminal.
    pub(crate) fn take_mouse(&mut self) -> Effect {
        self.has_mouse ^= true;
        let whose = if self.has_mouse {
            "clicks and the wheel go to top; m gives the mouse back to the terminal (or hold Shift)"
        } else {
            "the mouse is the terminal's: select text with it; m takes it again"
        };
        self.say(whose.to_owned());
        Effect::Mouse
    }

    /// Handles a click or the wheel, while the mouse is not the terminal's.
    pub(crate) fn use_mouse(&mut self, key: Key) {
        match key {
            _ if !self.has_mouse => {}
            Key::Click(x, 1) => {
                if let Some((_, tab)) = self
                    .places
                    .tabs
                    .iter()
                    .find(|(columns, _)| columns.contains(&x))
                {
                    (self.tab, self.over) = (*tab, Overlay::Nothing);
                }
            }
            Key::Click(_, y) if self.over == Overlay::Nothing && self.places.rows.contains(&y) => {
                self.click_row(y);
            }
            Key::Click(x, y)
                if self.over == Overlay::Nothing && y + 1 == self.places.rows.start =>
            {
                self.click_head(x);
            }
            Key::WheelUp => self.scroll(Key::Up),
            Key::WheelDown => self.scroll(Key::Down),
            _ => {}
        }
    }

    /// Orders by the column whose headline is there; reverses the order if it is that already.
    fn click_head(&mut self, x: u16) {
        let heads = &self.places.heads;
        let Some(&(_, column)) = heads.iter().find(|(columns, _)| columns.contains(&x)) else {
            return;
        };
        let order = &mut self.orders[self.tab as usize];
        *order = (column, order.0 == column && !order.1);
    }

    /// Selects the row that was drawn in that line; opens its details if it is selected already.
    fn click_row(&mut self, y: u16) {
        let place = self.scrolled[self.index()] + usize::from(y - self.places.rows.start);
        let rows = self.table().rows;
        let is_selected = self.selected(&rows) == place;
        let Some(id) = rows.get(place).map(Row::id) else {
            return;
        };
        self.selected[self.tab as usize] = Some(id);
        if is_selected {
            self.open(Overlay::Details);
        }
    }

    fn scroll(&mut self, step: Key) {
        for _ in 0..WHEEL {
            if self.over == Overlay::Nothing {
                self.move_selected(step);
            } else {
                self.key_over(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Connection, Identity, Sample, Traffic};

    fn model() -> Model {
        let connection = |index: u32| {
            let identity = Identity {
                subnqn: format!("cnode{index}"),
                ..Identity::default()
            };
            Connection {
                identity: identity.into(),
                ..Connection::default()
            }
        };
        let traffic = Traffic {
            connections: (0..3).map(connection).collect(),
            ..Traffic::default()
        };
        let mut model = Model::new("demo [1]", [None, None]);
        model.push(Sample {
            number: 1,
            traffic: Some(traffic),
            ..Sample::default()
        });
        model
    }

    #[test]
    fn the_mouse_is_used_only_while_it_is_ours() {
        let mut model = model();
        model.places = Places {
            tabs: vec![(0..10, Tab::Connections), (10..20, Tab::Threads)],
            rows: 7..10,
            heads: vec![(0..9, 0), (10..16, 6)],
        };
        let selected = |model: &Model| model.selected(&model.table().rows);
        model.key(Key::Click(12, 1));
        model.key(Key::WheelDown);
        assert_eq!(
            (model.tab(), selected(&model)),
            (Tab::Connections, 0),
            "it is the terminal's"
        );
        assert!(model.key(Key::Char('m')) == Effect::Mouse && model.has_mouse());
        model.key(Key::Click(12, 1));
        assert_eq!(model.tab(), Tab::Threads);
        model.key(Key::Click(3, 1));
        model.key(Key::Click(0, 8));
        assert_eq!(
            (model.tab(), selected(&model), model.over),
            (Tab::Connections, 1, Overlay::Nothing)
        );
        let orders = [3, 12, 12, 12].map(|x| {
            model.key(Key::Click(x, 6));
            model.table().order
        });
        assert_eq!(orders, [(0, false), (6, false), (6, true), (6, false)]);
        model.key(Key::Click(0, 8));
        assert_eq!(model.over, Overlay::Details);
        model.key(Key::Escape);
        model.key(Key::WheelDown);
        assert_eq!(selected(&model), 2);
        model.key(Key::WheelUp);
        model.key(Key::Click(0, 50));
        assert_eq!(selected(&model), 0);
        assert!(model.key(Key::Char('m')) == Effect::Mouse && !model.has_mouse());
    }
}
