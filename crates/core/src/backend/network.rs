//! What a box may reach.

use serde::{Deserialize, Serialize};

/// What a box may reach. A policy with rules will be the third variant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub enum Network {
    /// Nothing but its own loopback device.
    #[default]
    Off,
    /// Every address that the backend's network reaches.
    Open,
}

impl Network {
    /// Whether the box reaches anything beyond itself.
    pub fn is_on(self) -> bool {
        self != Network::Off
    }
}

/// As labels and records have it. The first release wrote a boolean.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Flag(bool),
    Named(Name),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Off,
    Open,
}

impl From<Stored> for Network {
    fn from(stored: Stored) -> Network {
        match stored {
            Stored::Flag(false) | Stored::Named(Name::Off) => Network::Off,
            Stored::Flag(true) | Stored::Named(Name::Open) => Network::Open,
        }
    }
}

impl From<Network> for Stored {
    fn from(network: Network) -> Stored {
        Stored::Named(match network {
            Network::Off => Name::Off,
            Network::Open => Name::Open,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_first_release_are_read() {
        for (stored, network) in
            [("false", Network::Off), ("true", Network::Open), ("\"off\"", Network::Off), ("\"open\"", Network::Open)]
        {
            assert_eq!(serde_json::from_str::<Network>(stored).unwrap(), network);
        }
        assert_eq!(serde_json::to_string(&Network::Open).unwrap(), "\"open\"");
        assert!(serde_json::from_str::<Network>("\"everything\"").is_err());
    }
}
